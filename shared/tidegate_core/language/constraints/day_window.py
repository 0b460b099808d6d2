"""One window of the day on a wall clock: whether it is open and when it opens next, through clock changes."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import model_validator

from tidegate_core.language.time.day_fields import DAY_SECONDS, TimeOfDay, Weekdays, time_text, weekday_of
from tidegate_core.language.time.zones import LARGEST_SHIFT_SECONDS, Segment, Zone
from tidegate_core.language.values.document import Document
from tidegate_core.language.values.problems import refused

_MAX_SEGMENTS = 64
"""Segments of constant offset that are searched for the next opening. A window opens within a week, so a few suffice."""
_DAYS_TRIED = 8
"""Days of one segment that are tried. After seven days of a week no further day can be one of the window's."""
TIME_HINTS = {"start": "it is called opens", "end": "it is called closes"}


def refuse_endless(opens: int, closes: int, days: tuple[str, ...] | None) -> None:
    """Refuses a window of 24 hours every day: its user has probably meant another one."""
    if opens == closes and days is None:
        hint = "leave the constraint out for a window of 24 hours, or name its days"
        raise refused("equals opens", field="closes", hint=hint)


class DayWindow(Document):
    """A span of the day; `opens` later than `closes` spans midnight.

    Attributes:
        opens: First time of day inside the window.
        closes: First time of day after the window; equal to `opens` for 24 hours of certain days.
        days: Days of the week on which the window opens; by default all. A window may close on the next day.
    """

    EXAMPLE: ClassVar = {"opens": "22:00", "closes": "06:00", "days": ["mon", "tue", "wed", "thu", "fri"]}
    FIELD_HINTS: ClassVar = {**TIME_HINTS, "zone": "all windows have one zone: write it next to windows"}

    opens: TimeOfDay
    closes: TimeOfDay
    days: Weekdays | None = None

    @model_validator(mode="after")
    def _some_time(self) -> Self:
        refuse_endless(self.opens, self.closes, self.days)
        return self

    def text(self) -> str:
        days = "" if self.days is None else f" {','.join(self.days)}"
        return f"{time_text(self.opens)}-{time_text(self.closes)}{days}"

    def is_open(self, second: int, segment: Segment) -> bool:
        return self._contains(second + segment.offset) or second < self._open_after_gap(segment)

    def next_opening(self, second: int, segment: Segment, zone: Zone) -> int:
        """Returns the first second after `second` at which the window is open; it is closed at `second`."""
        for _ in range(_MAX_SEGMENTS):
            opening = self._opening_in(second, segment)
            if opening is not None:
                return opening
            second = segment.end
            segment = zone.segment_at(second)
            if self.is_open(second, segment):
                return second
        raise AssertionError("a window opens once a week")

    @property
    def _length(self) -> int:
        return (self.closes - self.opens) % DAY_SECONDS or DAY_SECONDS

    def _opens_on(self, wall: int) -> bool:
        return self.days is None or weekday_of(wall) in self.days

    def _contains(self, wall: int) -> bool:
        inside = (wall - self.opens) % DAY_SECONDS
        return inside < self._length and self._opens_on(wall - inside)

    def _open_after_gap(self, segment: Segment) -> int:
        """Returns the second until which the window is open because its time fell into the gap before the segment.

        Returns the segment's start if the window's time was not in the gap.
        """
        before, after = segment.start + segment.offset_before, segment.start + segment.offset
        if not 0 < after - before <= LARGEST_SHIFT_SECONDS:
            return segment.start
        opening = before + (self.opens - before) % DAY_SECONDS
        vanished = opening + self._length <= after and self._opens_on(opening)
        return segment.start + self._length if vanished else segment.start

    def _opening_in(self, second: int, segment: Segment) -> int | None:
        opening = second + (self.opens - second - segment.offset) % DAY_SECONDS
        for _ in range(_DAYS_TRIED):
            if opening >= segment.end:
                return None
            if self._opens_on(opening + segment.offset):
                return opening
            opening += DAY_SECONDS
        return None
