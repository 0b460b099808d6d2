"""Wide controls: requests that stop, and let go on, a namespace or the whole system (SEMANTICS 10)."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from tidegate_core.language.requests.request_base import RequestBase
from tidegate_core.language.values.names import Namespace
from tidegate_core.language.values.planned_features import LANGUAGE, planned
from tidegate_core.language.values.problems import refused


class ControlRequest(RequestBase):
    """A request about all that a scope covers.

    Attributes:
        scope: `system`, or `namespace` together with its name.
    """

    PLANNED_FIELDS: ClassVar = planned(LANGUAGE, "until", "selector", "dataset", "launcher")
    PLANNED_VALUES: ClassVar = {
        "scope": planned(LANGUAGE, "schedule", "selector", "dataset", "launcher", hint="system and namespace work now"),
        "mode": planned(LANGUAGE, "drain", "hold", "freeze", hint="only drop works now"),
        "backlog": planned(LANGUAGE, "all", "last", "coalesce", hint="only none works now"),
    }

    scope: Literal["system", "namespace"]
    namespace: Namespace | None = None

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.scope == "namespace" and self.namespace is None:
            raise refused("names no namespace", hint="add namespace, or take scope: system")
        if self.scope == "system" and self.namespace is not None:
            raise refused("names a namespace and the whole system", hint="leave one of them out")
        return self


class ControlSuspend(ControlRequest):
    """Stop all that the scope covers: what waits is cancelled, events meanwhile are ignored, messages are held back."""

    EXAMPLE: ClassVar = {
        "id": "w-1",
        "type": "control.suspend",
        "scope": "namespace",
        "namespace": "flights",
        "actor": "ana",
        "reason": "the warehouse is being moved",
    }

    type: Literal["control.suspend"] = "control.suspend"
    mode: Literal["drop"] = "drop"


class ControlResume(ControlRequest):
    """Let a scope go on from now; its messages that were held back are delivered at once."""

    EXAMPLE: ClassVar = {"id": "w-2", "type": "control.resume", "scope": "system"}

    type: Literal["control.resume"] = "control.resume"
    backlog: Literal["none"] = "none"
