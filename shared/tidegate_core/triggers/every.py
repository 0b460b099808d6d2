"""Trigger on elapsed time: fires each `period`, aligned to the Unix epoch, whatever the clocks of any zone do."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from tidegate_core.model.durations import Duration, DurationField
from tidegate_core.model.instants import LATEST_INSTANT, Instant
from tidegate_core.model.planned import LANGUAGE, Planned
from tidegate_core.model.problems import refused
from tidegate_core.triggers.base import TimeTrigger

SHORTEST_PERIOD_MS = 1_000
"""The floor of the system; the minimum that is set is usually higher (SEMANTICS 1.7)."""

_CALENDAR_PERIOD = Planned(LANGUAGE, hint='write elapsed time such as "90m", or a cron trigger')


class EveryTrigger(TimeTrigger):
    """Fires at each multiple of `period` since 1970-01-01T00:00:00Z, moved by `phase`.

    Attributes:
        period: Elapsed time between two occurrences, 1 s or longer.
        phase: Moves all occurrences; 0 or longer, shorter than the period.
    """

    EXAMPLE: ClassVar = {"type": "every", "period": "90m", "phase": "10m"}
    FIELD_HINTS: ClassVar = {"every": "the field is called period", "interval": "the field is called period"}

    type: Literal["every"] = "every"
    period: DurationField
    phase: DurationField = Field(default=0, json_schema_extra={"default": "0s"})

    @field_validator("period", mode="before")
    @classmethod
    def _elapsed(cls, period: Any) -> Any:
        if isinstance(period, dict):
            raise refused(f"as calendar time {_CALENDAR_PERIOD.problem}", hint=_CALENDAR_PERIOD.hint, planned=True)
        return period

    @model_validator(mode="after")
    def _phase_inside_period(self) -> Self:
        if self.period < SHORTEST_PERIOD_MS:
            raise refused("is shorter than 1s", field="period")
        if self.phase >= self.period:
            raise refused("is not shorter than the period", field="phase")
        return self

    def smallest_gap_ms(self) -> Duration | None:
        return self.period

    def _following(self, after: Instant, identity: str) -> Instant | None:
        following = ((after - self.phase) // self.period + 1) * self.period + self.phase
        return following if following <= LATEST_INSTANT else None

    def _preceding(self, before: Instant) -> Instant | None:
        preceding = (before - self.phase - 1) // self.period * self.period + self.phase
        return preceding if preceding >= 0 else None
