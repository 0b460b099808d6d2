"""The constraint `concurrency`: bounds the open runs of the schedule, its program, a named group, or one value of a key."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from tidegate_core.language.constraints.constraint import Allow, Claim, LimitRef, Verdict
from tidegate_core.language.constraints.facts import Facts
from tidegate_core.language.constraints.limit_scope import ScopedConstraint
from tidegate_core.language.values.document import PLATFORM, Whole, planned
from tidegate_core.language.values.problems import refused

MAX_PERMITS = 1_000
"""Permits of a limit that schedules share. A limit is one item in the store, written at each start and end of a run."""
MAX_OWN_PERMITS = 16
"""Permits of a schedule's own limit. Its item names the runs with a permit."""


class ConcurrencyConstraint(ScopedConstraint):
    """Lets at most `max` runs be open at a time.

    Attributes:
        max: Number of open runs: 1 to 16, or 1 to 1,000 for a shared scope. Each schedule compares all runs with its own `max`.
        scope: Runs that count. `schedule`: runs of this schedule. `program`: runs of the same program. `group`: runs of
            schedules with the same group. `key`: runs with the same key. The last three count all runs of the namespace.
        group: Name of the group, for `scope: group`.
        key: Template for `scope: key`, such as `load ${correlation}`; it is resolved for each job.
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
        # A check here could be outdated at once. The permit is a condition of the admission's own write.
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
        # A job with two permits of one limit would wait for itself for ever if `max` is 1.
        return f"limits the same {self.scope_words}"
