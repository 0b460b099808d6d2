"""Trigger on data: fires once enough new data partitions of a dataset have arrived."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from pydantic import Field

from tidegate_core.language.events.events import DataPartitionEvent
from tidegate_core.language.triggers.on_event.counting_leaf import PLANNED_FOR_DATA, CountingLeaf, DatasetLeaf, listed
from tidegate_core.language.values.document import PLATFORM, Whole, planned

MAX_COUNT = 100_000
"""Entries of one manifest."""

Unit: TypeAlias = Literal["partitions", "events", "files"]
_WORDS: dict[Unit, str] = {"partitions": "data partitions", "events": "events", "files": "files"}


class DataPartitionsTrigger(DatasetLeaf):
    """Fires when `count` new data partitions of `dataset` arrived since the last firing.

    Attributes:
        dataset: A dataset of the schedule's namespace.
        count: How many are needed, up to the manifest's limit of 100,000.
        unit: What is counted: distinct data `partitions`; `events`, each announcement; or `files`, each version of a data
            partition, for sources that announce one file at a time.
        kinds: What counts beside `created`; `deleted` takes back what an unstarted job has of that data partition.
        where: Which events count.
    """

    EXAMPLE: ClassVar = {"type": "data_partitions", "dataset": "flights.raw", "count": 3}
    PLANNED_FIELDS: ClassVar = {**PLANNED_FOR_DATA, **planned(PLATFORM, "partitions")}
    LATER_FIELDS: ClassVar = CountingLeaf.LATER_FIELDS | {"unit", "kinds"}

    type: Literal["data_partitions"] = "data_partitions"
    count: Whole = Field(default=1, ge=1, le=MAX_COUNT)
    unit: Unit = "partitions"

    @property
    def needed(self) -> int:
        return self.count

    def key_of(self, event: DataPartitionEvent) -> str:
        if self.unit == "partitions":
            # The data partition and not the event: one that is announced twice is still one (SEMANTICS 5.3).
            return event.data_partition
        if self.unit == "files":
            return listed(event.data_partition, event.version or "")
        return event.dedupe_id

    def shortfall(self, count: int) -> str | None:
        short_by = self.count - count
        return f"{short_by} of {self.count} {_WORDS[self.unit]} of {self.dataset}" if short_by > 0 else None
