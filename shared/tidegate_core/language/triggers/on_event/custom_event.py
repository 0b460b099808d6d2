"""The trigger `event`: fires when enough custom events of users have arrived."""

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
"""Most events of one job. The limit is lower than for data partitions, because each event may bring data into the job's context."""


class CustomEventTrigger(CountingLeaf):
    """Fires when `count` events of type `name` have arrived since the last fire.

    Attributes:
        name: Type of the events, `custom.<name>`, in the schedule's namespace.
        count: Number of distinct events. Events without an id are distinct if their content differs.
        where: Filter on the events.
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
