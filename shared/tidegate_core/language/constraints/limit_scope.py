"""Whose runs a constraint counts together: the schedule's, its program's, a named group's, or those of one value of a key."""

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
"""Of a key when it is resolved: it is told in reasons, and kept with each job that waits for it."""
OF_ONE_RUN: Final = frozenset({"run.id", "attempt"})
"""Variables that no two runs have in common, or that change while a job waits: what they count is never more than one."""
FIELD_OF_SCOPE: Final = {"group": "group", "key": "key"}


class ScopedConstraint(ConstraintSpec, ABC):
    """Counts the runs of a scope.

    Attributes:
        scope: Whose runs are counted together; all but `schedule` count in the namespace, whichever schedule they come from.
        group: Name of the group, for `scope: group`.
        key: For `scope: key`, a template such as `load ${correlation}`: it is resolved for each job.
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

    @property
    def scope_words(self) -> str:
        """What says of two constraints that they count the same runs."""
        return {"group": f"group {self.group}", "key": f"key {self.key}"}.get(self.scope, self.scope)

    def scope_name(self, claim: Claim) -> str:
        """Returns the name under which the runs are counted. Raises Unresolved."""
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
