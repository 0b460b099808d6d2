"""Constraint on how many runs are open at a time: of the schedule, its program, a named group, or one value of a key."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from tidegate_core.language.constraints.constraint import Allow, Claim, LimitRef, Verdict
from tidegate_core.language.constraints.facts import Facts
from tidegate_core.language.constraints.limit_scope import ScopedConstraint
from tidegate_core.language.values.document import PLATFORM, Whole, planned
from tidegate_core.language.values.problems import refused

MAX_PERMITS = 1_000
"""Of what schedules share: a limit is one item in the store, written by each start and each end."""
MAX_OWN_PERMITS = 16
"""Of a schedule: the limit's item names its holders."""


class ConcurrencyConstraint(ScopedConstraint):
    """Lets at most `max` runs be open at a time.

    Attributes:
        max: 1 to 16; of what schedules share, to 1,000. Each schedule is admitted by its own `max`, and counts all runs.
        scope: `schedule`: this schedule's runs. `program`: runs of the same program. `group`: runs of all schedules that name the
            same group. `key`: runs whose keys are the same text. The last three count in the namespace, whichever schedule
            the runs come from.
        group: Name of the group, for `scope: group`.
        key: For `scope: key`, a template such as `load ${correlation}`: it is resolved for each job.
    """

    EXAMPLE: ClassVar = {"type": "concurrency", "max": 1, "scope": "program"}
    PLANNED_FIELDS: ClassVar = planned(PLATFORM, "limit", "pool", "tokens")

    type: Literal["concurrency"] = "concurrency"
    max: Whole = Field(ge=1, json_schema_extra={"maximum": MAX_PERMITS})

    @field_validator("max")
    @classmethod
    def _countable(cls, permits: int, found: ValidationInfo) -> int:
        most = MAX_OWN_PERMITS if found.data.get("scope", "schedule") == "schedule" else MAX_PERMITS
        if permits > most:
            raise refused(f"above {most} is planned for {PLATFORM}", hint=f"allow at most {most} runs")
        return permits

    def check(self, facts: Facts) -> Verdict:
        # No clock decides it and no look beforehand: the permit is a condition of the admission's own write.
        return Allow()

    def limit(self, claim: Claim) -> LimitRef:
        return LimitRef(
            scope=self.scope,
            namespace=claim.namespace,
            name=self.scope_name(claim),
            max=self.max,
            on_unmet=self.on_unmet,
        )

    @property
    def only_once(self) -> str | None:
        # Two permits of one limit for one job: with max 1 it would wait for itself for ever.
        return f"limits the same {self.scope_words}"
