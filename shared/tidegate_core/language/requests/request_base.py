"""What every request has, whatever it is about.

Wide controls: requests that stop, and let go on, a namespace or the whole system (SEMANTICS 10).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from tidegate_core.language.values.document import LANGUAGE, Document, planned
from tidegate_core.language.values.names import Namespace, RequestId, ShortText
from tidegate_core.language.values.problems import refused

MAX_RECORD_BYTES = 1_048_576
"""A request or event: 1 MiB. The topics take 4 MiB, so that what is refused is seen and kept as a dead letter."""


class RequestBase(Document):
    """What every request has.

    Attributes:
        id: The sender's; a repeat of it is recognised for 7 days. Without one a repeat is a second request.
        actor: Who wants it, for the record.
        reason: Why, for the record.
    """

    id: RequestId | None = None
    actor: ShortText | None = None
    reason: ShortText | None = None

    def to_json(self, without: Collection[str] = ()) -> bytes:
        """Returns the request as a record's value; what was left out stays out.

        Args:
            without: Fields that are kept elsewhere.
        """
        fields = self.model_dump(mode="json", exclude_unset=True, exclude=set(without))
        document = {"type": getattr(self, "type", ""), **fields}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


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
