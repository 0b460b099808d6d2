"""The constraint `time_window`: holds jobs outside of windows on a zone's wall clock."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tidegate_core.language.constraints.constraint import Allow, ConstraintSpec, Hold, Verdict
from tidegate_core.language.constraints.day_window import TIME_HINTS, DayWindow, refuse_endless
from tidegate_core.language.constraints.facts import Facts
from tidegate_core.language.time.day_fields import TimeOfDay, Weekdays
from tidegate_core.language.time.zones import ZoneName, zone_named
from tidegate_core.language.values.document import PLATFORM, AtMost, planned
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.problems import refused

MAX_WINDOWS = 16


class TimeWindowConstraint(ConstraintSpec):
    """Holds jobs outside of `opens`..`closes`; `opens` later than `closes` spans midnight.

    Both passes of a repeated hour are inside the window. If a clock change skips the whole window, it is open for its normal
    length from the change on.

    Attributes:
        opens: First time of day inside the window.
        closes: First time of day after the window.
        days: Days of the week on which the window opens; by default all.
        windows: List of up to 16 windows, instead of these three fields; a job runs if any window is open.
        zone: Zone of the wall clock.
    """

    EXAMPLE: ClassVar = {"type": "time_window", "opens": "22:00", "closes": "06:00", "zone": "America/New_York"}
    PLANNED_FIELDS: ClassVar = planned(PLATFORM, "fit", "slack", "calendar")
    FIELD_HINTS: ClassVar = {**TIME_HINTS, "tz": "the field is called zone", "day": "the field is called days"}

    type: Literal["time_window"] = "time_window"
    opens: TimeOfDay | None = None
    closes: TimeOfDay | None = None
    days: Weekdays | None = None
    windows: Annotated[tuple[DayWindow, ...], AtMost(MAX_WINDOWS)] | None = Field(default=None, min_length=1)
    zone: ZoneName = "UTC"

    @model_validator(mode="after")
    def _one_way_of_saying_it(self) -> Self:
        alone = {"opens": self.opens, "closes": self.closes, "days": self.days}
        if self.windows is None:
            missing = next((name for name in ("opens", "closes") if alone[name] is None), None)
            if missing is not None:
                raise refused("is missing", field=missing, hint="or list several windows under windows")
            assert self.opens is not None
            assert self.closes is not None
            refuse_endless(self.opens, self.closes, self.days)
            return self
        extra = next((name for name, value in alone.items() if value is not None), None)
        if extra is not None:
            raise refused("must not be given with windows", field=extra, hint="write it into one of the windows")
        return self

    @cached_property
    def _all(self) -> tuple[DayWindow, ...]:
        if self.windows is not None:
            return self.windows
        assert self.opens is not None
        assert self.closes is not None
        return (DayWindow.model_construct(opens=self.opens, closes=self.closes, days=self.days),)

    def check(self, facts: Facts) -> Verdict:
        second = facts.now // 1000
        zone = zone_named(self.zone)
        segment = zone.segment_at(second)
        if any(window.is_open(second, segment) for window in self._all):
            return Allow()
        # The exact opening, so that a held job is checked once at 22:00 and not at every poll.
        opening = min(window.next_opening(second, segment, zone) for window in self._all) * 1000
        texts = " and ".join(window.text() for window in self._all)
        shown, opens = ("windows", "open") if len(self._all) > 1 else ("window", "opens")
        return Hold(
            until=opening,
            reason_code="window_closed",
            reason=f"the {shown} {texts} {self.zone} {opens} at {format_instant(opening)}",
            values={"windows": texts, "zone": self.zone, "opens_at": format_instant(opening)},
        )
