"""Trigger on events of the users' own: fires once enough of them have come."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from tidegate_core.language.events.events import CustomEvent
from tidegate_core.language.events.trigger_facts import Fact
from tidegate_core.language.triggers.on_event.counting_leaf import CountingLeaf
from tidegate_core.language.triggers.on_event.event_filter import Filter
from tidegate_core.language.values.document import Whole
from tidegate_core.language.values.names import CustomEventType

MAX_EVENTS = 10_000
"""Fewer than data partitions: each may bring some data of its own into the job's context."""


class CustomEventTrigger(CountingLeaf):
    """Fires when `count` events called `name` have come since the last firing.

    Attributes:
        name: Their type, `custom.<name>`, of the schedule's namespace.
        count: Distinct events needed; by their id, else by all that they say.
        where: Which of them count.
    """

    EXAMPLE: ClassVar = {
        "type": "event",
        "name": "custom.truck-arrived",
        "count": 2,
        "where": {"field": "/data/pallets", "at_least": 10},
    }
    FIELD_HINTS: ClassVar = {"filter": "the field is called where", "event": "the field is called name"}

    type: Literal["event"] = "event"
    name: CustomEventType
    count: Whole = Field(default=1, ge=1, le=MAX_EVENTS)
    where: Filter | None = None

    @property
    def needed(self) -> int:
        return self.count

    def event_key(self, namespace: str) -> str:
        return f"custom/{namespace}/{self.name.removeprefix('custom.')}"

    def accepts(self, event: Fact, namespace: str) -> str | None:
        if not isinstance(event, CustomEvent) or event.event_key != self.event_key(namespace):
            return None
        return event.dedupe_id if self.where is None or self.where.holds_for(event) else None

    def correlation_of(self, event: Fact) -> str:
        return (event.subject or "") if isinstance(event, CustomEvent) else ""

    def shortfall(self, count: int) -> str | None:
        short_by = self.count - count
        return f"{short_by} of {self.count} events {self.name}" if short_by > 0 else None
