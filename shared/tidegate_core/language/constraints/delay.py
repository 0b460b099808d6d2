"""The constraint `delay`: holds a job for a fixed time after its trigger was satisfied, for example for late events."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from tidegate_core.language.constraints.constraint import Allow, ConstraintSpec, Hold, OnUnmet, Verdict
from tidegate_core.language.constraints.facts import Facts
from tidegate_core.language.values.durations import DurationField, format_duration
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.problems import refused


class DelayConstraint(ConstraintSpec):
    """Holds a job for a fixed time after its trigger was satisfied.

    The delay starts at the satisfaction, not at the first event: if five data partitions are needed, at the fifth.

    Attributes:
        after: Length of the delay, 1 ms or longer.
    """

    EXAMPLE: ClassVar = {"type": "delay", "after": "15m"}
    FIELD_HINTS: ClassVar = {"delay": "the field is called after", "for": "the field is called after"}

    type: Literal["delay"] = "delay"
    after: DurationField = Field(gt=0)

    @field_validator("on_unmet")
    @classmethod
    def _only_waits(cls, action: OnUnmet) -> OnUnmet:
        if action == "abort":
            raise refused("would abort every job", hint="leave it out: jobs always wait for a delay")
        return action

    def check(self, facts: Facts) -> Verdict:
        until = facts.satisfied_at + self.after
        if facts.now >= until:
            return Allow()
        return Hold(
            until=until,
            reason_code="delayed",
            reason=f"the delay of {format_duration(self.after)} ends at {format_instant(until)}",
            values={"after": self.after, "satisfied_at": format_instant(facts.satisfied_at)},
        )

    @property
    def only_once(self) -> str | None:
        return "delays the job"
