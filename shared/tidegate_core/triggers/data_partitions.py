"""Trigger on data: fires once enough new data partitions of a dataset have arrived."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from tidegate_core.model.document import Whole
from tidegate_core.model.events import DataPartitionEvent
from tidegate_core.model.facts import Fact
from tidegate_core.model.names import DatasetId
from tidegate_core.model.planned import LANGUAGE, planned
from tidegate_core.triggers.base import PLANNED_FOR_EVENTS, LeafTrigger

MAX_COUNT = 100_000
"""Entries of one manifest."""


class DataPartitionsTrigger(LeafTrigger):
    """Fires when `count` distinct data partitions of `dataset` arrived since the last firing.

    Attributes:
        dataset: A dataset of the schedule's namespace.
        count: Distinct data partitions needed, up to the manifest's limit of 100,000.
    """

    EXAMPLE: ClassVar = {"type": "data_partitions", "dataset": "flights.raw", "count": 3}
    PLANNED_FIELDS: ClassVar = {
        **PLANNED_FOR_EVENTS,
        **planned(LANGUAGE, "kinds", "unit", "take", "size", "partitions", "where"),
    }

    type: Literal["data_partitions"] = "data_partitions"
    dataset: DatasetId
    count: Whole = Field(default=1, ge=1, le=MAX_COUNT)

    @property
    def needed(self) -> int:
        return self.count

    def event_key(self, namespace: str) -> str:
        return f"data/{namespace}/{self.dataset}"

    def accepts(self, event: Fact, namespace: str) -> str | None:
        if not isinstance(event, DataPartitionEvent) or event.event_key != self.event_key(namespace):
            return None
        # The data partition and not the event: one that is announced twice is still one (SEMANTICS 5.3).
        return event.data_partition if event.kind == "created" else None

    def correlation_of(self, event: Fact) -> str:
        return event.data_partition if isinstance(event, DataPartitionEvent) else ""

    def shortfall(self, count: int) -> str | None:
        short_by = self.count - count
        return f"{short_by} of {self.count} data partitions of {self.dataset}" if short_by > 0 else None
