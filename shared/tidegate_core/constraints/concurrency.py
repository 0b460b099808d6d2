"""Constraint on how many runs there are at a time, of the schedule or of its program."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from tidegate_core.constraints.base import Allow, ConstraintSpec, LimitRef, Verdict
from tidegate_core.model.document import Whole
from tidegate_core.model.instants import Instant
from tidegate_core.model.planned import PLATFORM, planned
from tidegate_core.model.problems import refused
from tidegate_core.model.programs import Program

MAX_PERMITS = 16
"""Holders that a limit's item keeps inline; more need an item per permit."""


class ConcurrencyConstraint(ConstraintSpec):
    """Lets at most `max` runs be open at a time.

    Attributes:
        max: 1 to 16.
        scope: `schedule`: this schedule's runs. `program`: runs of the same program in the namespace, whichever schedule
            they come from; each schedule is admitted by its own `max`.
    """

    EXAMPLE: ClassVar = {"type": "concurrency", "max": 1, "scope": "program"}
    PLANNED_FIELDS: ClassVar = planned(PLATFORM, "key", "limit", "pool", "tokens")
    PLANNED_VALUES: ClassVar = {"scope": planned(PLATFORM, "group", "key", "namespace", "app", "limit")}

    type: Literal["concurrency"] = "concurrency"
    max: Whole = Field(ge=1, json_schema_extra={"maximum": MAX_PERMITS})
    scope: Literal["schedule", "program"] = "schedule"

    @field_validator("max")
    @classmethod
    def _inline(cls, permits: int) -> int:
        if permits > MAX_PERMITS:
            raise refused(f"above {MAX_PERMITS} is planned for {PLATFORM}", hint=f"allow at most {MAX_PERMITS} runs")
        return permits

    def check(self, now: Instant) -> Verdict:
        # No clock decides it and no look beforehand: the permit is a condition of the admission's own write.
        return Allow()

    def limits(self, namespace: str, schedule: str, program: Program) -> tuple[LimitRef, ...]:
        return (self.limit_key(namespace, schedule, program),)

    def limit_key(self, namespace: str, schedule: str, program: Program) -> LimitRef:
        name = schedule if self.scope == "schedule" else program.identity
        return LimitRef(scope=self.scope, namespace=namespace, name=name, max=self.max, on_unmet=self.on_unmet)
