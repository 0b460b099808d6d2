"""Constraint on the time of day: holds jobs back outside of a window on a zone's wall clock."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from tidegate_core.constraints.base import Allow, ConstraintSpec, Hold, LimitRef, Verdict
from tidegate_core.model.instants import Instant, format_instant
from tidegate_core.model.planned import LANGUAGE, planned
from tidegate_core.model.problems import refused
from tidegate_core.model.programs import Program
from tidegate_core.time.time_of_day import TimeOfDay, time_text
from tidegate_core.time.zones import LARGEST_SHIFT_SECONDS, Segment, Zone, ZoneName, zone_named

_DAY_SECONDS = 86_400
_MAX_SEGMENTS = 64
"""Stretches of constant offset that are searched for the next opening: there is one a day, so two would do."""


class TimeWindowConstraint(ConstraintSpec):
    """Holds jobs back outside of `opens`..`closes`; `opens` later than `closes` spans midnight.

    Both passes of a repeated hour are inside. A window that a clock change skips as a whole is open for its nominal
    length from the change on (SEMANTICS 2.5).

    Attributes:
        opens: First time of day inside.
        closes: First time of day outside again.
        zone: Whose wall clock is read.
    """

    EXAMPLE: ClassVar = {"type": "time_window", "opens": "22:00", "closes": "06:00", "zone": "America/New_York"}
    PLANNED_FIELDS: ClassVar = planned(LANGUAGE, "days", "fit", "calendar")
    FIELD_HINTS: ClassVar = {
        "tz": "the field is called zone",
        "start": "it is called opens",
        "end": "it is called closes",
    }

    type: Literal["time_window"] = "time_window"
    opens: TimeOfDay
    closes: TimeOfDay
    zone: ZoneName = "UTC"

    @model_validator(mode="after")
    def _some_time(self) -> Self:
        if self.opens == self.closes:
            raise refused("equals opens", field="closes", hint="leave the constraint out for a window of 24 hours")
        return self

    def check(self, now: Instant) -> Verdict:
        second = now // 1000
        segment = zone_named(self.zone).segment_at(second)
        if self._is_open(second, segment):
            return Allow()
        # The exact opening, so that a held job is read once at 22:00 and not at every poll.
        opening = self._next_opening(second, segment, zone_named(self.zone)) * 1000
        return Hold(
            until=opening,
            reason_code="window_closed",
            reason=f"the window {time_text(self.opens)}-{time_text(self.closes)} {self.zone} "
            f"opens at {format_instant(opening)}",
        )

    def limits(self, namespace: str, schedule: str, program: Program) -> tuple[LimitRef, ...]:
        return ()

    @property
    def _length(self) -> int:
        return (self.closes - self.opens) % _DAY_SECONDS

    def _is_open(self, second: int, segment: Segment) -> bool:
        return self._contains(second + segment.offset) or second < self._open_after_gap(segment)

    def _contains(self, wall: int) -> bool:
        return (wall - self.opens) % _DAY_SECONDS < self._length

    def _open_after_gap(self, segment: Segment) -> int:
        """Returns the second until which a window is open that vanished in the gap before the segment; else its start."""
        before, after = segment.start + segment.offset_before, segment.start + segment.offset
        if not 0 < after - before <= LARGEST_SHIFT_SECONDS:
            return segment.start
        opening = before + (self.opens - before) % _DAY_SECONDS
        vanished = opening + self._length <= after
        return segment.start + self._length if vanished else segment.start

    def _next_opening(self, second: int, segment: Segment, zone: Zone) -> int:
        for _ in range(_MAX_SEGMENTS):
            wall = second + segment.offset
            opening = second + (self.opens - wall) % _DAY_SECONDS
            if opening < segment.end:
                return opening
            second = segment.end
            segment = zone.segment_at(second)
            if self._is_open(second, segment):
                return second
        raise AssertionError("a window opens once a day")
