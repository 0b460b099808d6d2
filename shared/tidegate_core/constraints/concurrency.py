"""Constraint on how many runs are open at a time: of the schedule, its program, a named group, or one value of a key."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import Field, StringConstraints, ValidationInfo, field_validator, model_validator

from tidegate_core.constraints.base import Allow, Claim, ConstraintSpec, Facts, LimitRef, Verdict
from tidegate_core.model.document import Whole
from tidegate_core.model.names import Name
from tidegate_core.model.planned import PLATFORM, planned
from tidegate_core.model.problems import refused
from tidegate_core.model.templates import TemplateError, Unresolved, Variable, parse_template, resolve_text

MAX_PERMITS = 1_000
"""Of what schedules share: a limit is one item in the store, written by each start and each end."""
MAX_OWN_PERMITS = 16
"""Of a schedule: the limit's item names its holders."""
KEY_BYTES_MAX: Final = 1_024
"""Of a key when it is resolved: it is told in reasons, and kept with each job that waits for it."""
OF_ONE_RUN: Final = frozenset({"run.id", "attempt"})
"""Variables that no two runs have in common, or that change while a job waits: what they count is never more than one."""
FIELD_OF_SCOPE: Final = {"group": "group", "key": "key"}


class ConcurrencyConstraint(ConstraintSpec):
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
    PLANNED_VALUES: ClassVar = {"scope": planned(PLATFORM, "namespace", "app", "limit")}

    type: Literal["concurrency"] = "concurrency"
    scope: Literal["schedule", "program", "group", "key"] = "schedule"
    group: Name | None = None
    key: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    max: Whole = Field(ge=1, json_schema_extra={"maximum": MAX_PERMITS})

    @field_validator("max")
    @classmethod
    def _countable(cls, permits: int, found: ValidationInfo) -> int:
        most = MAX_OWN_PERMITS if found.data.get("scope", "schedule") == "schedule" else MAX_PERMITS
        if permits > most:
            raise refused(f"above {most} is planned for {PLATFORM}", hint=f"allow at most {most} runs")
        return permits

    @field_validator("key")
    @classmethod
    def _a_template(cls, key: str | None) -> str | None:
        if key is None:
            return None
        try:
            parts = parse_template(key)
        except TemplateError as error:
            raise refused(error.problem, hint=error.hint) from error
        own = next((part.name for part in parts if isinstance(part, Variable) and part.name in OF_ONE_RUN), None)
        if own is not None:
            raise refused(f"${{{own}}} is of one run only, so nothing would be limited", hint="try ${correlation}")
        return key

    @model_validator(mode="after")
    def _named_as_its_scope_wants(self) -> Self:
        for scope, field in FIELD_OF_SCOPE.items():
            given = getattr(self, field) is not None
            if self.scope == scope and not given:
                raise refused(f"is needed by scope: {scope}", field=field, hint=f"say which {scope} is limited")
            if self.scope != scope and given:
                raise refused(f"means nothing for scope: {self.scope}", field=field, hint=f"write scope: {scope}")
        return self

    def check(self, facts: Facts) -> Verdict:
        # No clock decides it and no look beforehand: the permit is a condition of the admission's own write.
        return Allow()

    def limit(self, claim: Claim) -> LimitRef:
        return LimitRef(
            scope=self.scope,
            namespace=claim.namespace,
            name=self._name(claim),
            max=self.max,
            on_unmet=self.on_unmet,
        )

    @property
    def only_once(self) -> str | None:
        # Two permits of one limit for one job: with max 1 it would wait for itself for ever.
        named = {"group": f"group {self.group}", "key": f"key {self.key}"}.get(self.scope, self.scope)
        return f"limits the same {named}"

    def _name(self, claim: Claim) -> str:
        match self.scope:
            case "schedule":
                return claim.schedule
            case "program":
                return claim.program.identity
            case "group":
                assert self.group is not None
                return self.group
            case "key":
                assert self.key is not None
                return _resolved(self.key, claim)


def _resolved(key: str, claim: Claim) -> str:
    found = resolve_text("constraints.key", key, claim.values)
    size = len(found.encode(errors="replace"))
    if size > KEY_BYTES_MAX:
        raise Unresolved("constraints.key", f"has {size} bytes when resolved, at most {KEY_BYTES_MAX}")
    return found
