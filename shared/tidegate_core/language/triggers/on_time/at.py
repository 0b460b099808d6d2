"""The trigger `at`: fires once, at one instant. If the instant has passed when the schedule is applied, it fires at once."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from tidegate_core.language.triggers.exclusions import ALL_MINUTES
from tidegate_core.language.triggers.search import Search
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.durations import Duration
from tidegate_core.language.values.instants import Instant, InstantField
from tidegate_core.language.values.problems import refused


class AtTrigger(TimeTrigger):
    """Fires once, at `instant`.

    Attributes:
        instant: Nominal time of the occurrence, also if it is late.
    """

    EXAMPLE: ClassVar = {"type": "at", "instant": "2026-12-24T18:00:00Z"}
    FIELD_HINTS: ClassVar = {"at": "the field is called instant", "time": "the field is called instant"}

    type: Literal["at"] = "at"
    instant: InstantField

    @model_validator(mode="after")
    def _inside_its_bounds(self) -> Self:
        if (self.start is not None and self.instant < self.start) or (
            self.end is not None and self.instant >= self.end
        ):
            raise refused(
                "lies outside of start and end", field="instant", hint="leave start and end out: this fires once"
            )
        for field in ("exclude", "max_fires"):
            if getattr(self, field) is not None:
                raise refused("is not allowed here: this trigger fires once", field=field, hint="leave it out")
        return self

    def counts_from(self, activated: Instant) -> Instant:
        # The user asked for exactly this occurrence, so it counts even if it is late.
        return min(activated, self.instant)

    def smallest_gap_ms(self, identity: str = "") -> Duration | None:
        return None

    def minutes_of(self, day: int, identity: str) -> int:
        own, rest = divmod(self.instant // 60_000, ALL_MINUTES.bit_length())
        return 1 << rest if day == own else 0

    def _following(self, after: Instant, identity: str, search: Search) -> Instant | None:
        return self.instant if self.instant > after else None

    def _preceding(self, before: Instant, identity: str, search: Search) -> Instant | None:
        return self.instant if self.instant < before else None
