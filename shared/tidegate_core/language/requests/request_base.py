"""Base class of all requests, and the requests that suspend and resume a namespace or the whole system."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from tidegate_core.language.values.document import LANGUAGE, Document, planned
from tidegate_core.language.values.names import Namespace, RequestId, ShortText
from tidegate_core.language.values.problems import refused

MAX_RECORD_BYTES = 1_048_576
"""Size of a request or event, 1 MiB. The topics accept 4 MiB, so that a larger record is read, refused and kept as a dead letter."""


class RequestBase(Document):
    """The fields of every request.

    Attributes:
        id: Id that the sender chose. A repeat is recognised for 7 days; without an id a repeat is a second request.
        actor: Name of the person or program that sends the request, for the history.
        reason: Reason for the request, for the history.
    """

    CLUSTER_OBJECT: ClassVar[str | None] = None
    """Name of the one versioned item that the request is about; None: it is about something with a namespace."""

    id: RequestId | None = None
    actor: ShortText | None = None
    reason: ShortText | None = None

    def to_json(self, without: Collection[str] = ()) -> bytes:
        """Returns the request as a record's value, without fields that the sender left out.

        Args:
            without: Further fields to leave out, because they are stored elsewhere.
        """
        fields = self.model_dump(mode="json", exclude_unset=True, exclude=set(without))
        document = {"type": getattr(self, "type", ""), **fields}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


class ControlRequest(RequestBase):
    """A request about a scope: a namespace or the whole system.

    Attributes:
        scope: Kind of scope, `system` or `namespace`.
        namespace: Name of the namespace, for `scope: namespace`.
    """

    CLUSTER_OBJECT: ClassVar = "controls"
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
    """Suspend a scope: waiting jobs are cancelled, events during the suspension are ignored, and messages are held."""

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
    """Resume a scope from now on; its held messages are delivered at once."""

    EXAMPLE: ClassVar = {"id": "w-2", "type": "control.resume", "scope": "system"}

    type: Literal["control.resume"] = "control.resume"
    backlog: Literal["none"] = "none"
