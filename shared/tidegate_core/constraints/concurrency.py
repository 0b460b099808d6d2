"""Constraint on how many runs there are at a time, of the schedule or of its program."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from tidegate_core.constraints.base import Allow, ConstraintSpec, Facts, LimitRef, Verdict
from tidegate_core.model.document import Whole
from tidegate_core.model.planned import PLATFORM, planned
from tidegate_core.model.problems import refused
from tidegate_core.model.programs import Program

MAX_PERMITS = 1_000
"""Of a program: a limit is one item in the store, written by each start and each end."""
MAX_OWN_PERMITS = 16
"""Of a schedule: the limit's item names its holders."""


class ConcurrencyConstraint(ConstraintSpec):
    """Lets at most `max` runs be open at a time.

    Attributes:
        max: 1 to 16; of a program to 1,000.
        scope: `schedule`: this schedule's runs. `program`: runs of the same program in the namespace, whichever schedule
            they come from; each schedule is admitted by its own `max`.
    """

    EXAMPLE: ClassVar = {"type": "concurrency", "max": 1, "scope": "program"}
    PLANNED_FIELDS: ClassVar = planned(PLATFORM, "key", "limit", "pool", "tokens")
    PLANNED_VALUES: ClassVar = {"scope": planned(PLATFORM, "group", "key", "namespace", "app", "limit")}

    type: Literal["concurrency"] = "concurrency"
    scope: Literal["schedule", "program"] = "schedule"
    max: Whole = Field(ge=1, json_schema_extra={"maximum": MAX_PERMITS})

    @field_validator("max")
    @classmethod
    def _countable(cls, permits: int, found: ValidationInfo) -> int:
        most = MAX_PERMITS if found.data.get("scope") == "program" else MAX_OWN_PERMITS
        if permits > most:
            raise refused(f"above {most} is planned for {PLATFORM}", hint=f"allow at most {most} runs")
        return permits

    def check(self, facts: Facts) -> Verdict:
        # No clock decides it and no look beforehand: the permit is a condition of the admission's own write.
        return Allow()

    def limits(self, namespace: str, schedule: str, program: Program) -> tuple[LimitRef, ...]:
        return (self.limit_key(namespace, schedule, program),)

    @property
    def only_once(self) -> str | None:
        # Two permits of one limit for one job: with max 1 it would wait for itself for ever.
        return f"limits the same {self.scope}"

    def limit_key(self, namespace: str, schedule: str, program: Program) -> LimitRef:
        name = schedule if self.scope == "schedule" else program.identity
        return LimitRef(scope=self.scope, namespace=namespace, name=name, max=self.max, on_unmet=self.on_unmet)
