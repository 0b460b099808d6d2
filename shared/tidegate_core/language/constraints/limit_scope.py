"""Scope of a limit: the runs of the schedule, its program, a named group, or one value of a key."""

from __future__ import annotations

from abc import ABC
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import StringConstraints, field_validator, model_validator

from tidegate_core.language.constraints.constraint import Claim, ConstraintSpec
from tidegate_core.language.targets.argument_templates import (
    TemplateError,
    Unresolved,
    Variable,
    parse_template,
    resolve_text,
)
from tidegate_core.language.values.document import PLATFORM, planned
from tidegate_core.language.values.names import Name
from tidegate_core.language.values.problems import refused

KEY_BYTES_MAX: Final = 1_024
"""Bytes of a resolved key. Reasons show it, and each job that waits for its limit stores it."""
OF_ONE_RUN: Final = frozenset({"run.id", "attempt"})
"""Variables that differ between all runs or change while a job waits. A limit on a key with one of these never counts two runs."""
FIELD_OF_SCOPE: Final = {"group": "group", "key": "key"}


class ScopedConstraint(ConstraintSpec, ABC):
    """A constraint that counts the runs of a scope.

    Attributes:
        scope: Runs that count together. All scopes except `schedule` count runs of all schedules of the namespace.
        group: Name of the group, for `scope: group`.
        key: Template for `scope: key`, such as `load ${correlation}`; it is resolved for each job.
    """

    PLANNED_VALUES: ClassVar = {"scope": planned(PLATFORM, "namespace", "app", "limit")}

    scope: Literal["schedule", "program", "group", "key"] = "schedule"
    group: Name | None = None
    key: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None

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
            raise refused(f"${{{own}}} differs for each run, so nothing would be limited", hint="try ${correlation}")
        return key

    @model_validator(mode="after")
    def _named_as_its_scope_wants(self) -> Self:
        for scope, field in FIELD_OF_SCOPE.items():
            given = getattr(self, field) is not None
            if self.scope == scope and not given:
                raise refused(f"is needed by scope: {scope}", field=field, hint=f"say which {scope} is limited")
            if self.scope != scope and given:
                raise refused(f"has no effect with scope: {self.scope}", field=field, hint=f"write scope: {scope}")
        return self

    @property
    def scope_words(self) -> str:
        """Text that is equal for constraints that count the same runs."""
        return {"group": f"group {self.group}", "key": f"key {self.key}"}.get(self.scope, self.scope)

    def scope_name(self, claim: Claim) -> str:
        """Returns the name of the limit. Raises Unresolved."""
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
