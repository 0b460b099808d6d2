"""The trigger `data_partitions`: fires when enough new data partitions of a dataset have arrived."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from pydantic import Field

from tidegate_core.language.events.events import DataPartitionEvent
from tidegate_core.language.triggers.on_event.counting_leaf import PLANNED_FOR_DATA, CountingLeaf, DatasetLeaf, listed
from tidegate_core.language.values.document import PLATFORM, Whole, planned

MAX_COUNT = 100_000
"""Entries of one manifest, the list of a job's data partitions."""

Unit: TypeAlias = Literal["partitions", "events", "files"]
_WORDS: dict[Unit, str] = {"partitions": "data partitions", "events": "events", "files": "files"}


class DataPartitionsTrigger(DatasetLeaf):
    """Fires when `count` new data partitions of `dataset` have arrived since the last fire.

    Attributes:
        dataset: Dataset of the schedule's namespace.
        count: Number that is needed, up to the manifest's limit of 100,000.
        unit: Unit of the count. `partitions`: distinct data partitions. `events`: every event. `files`: every version of a
            data partition, for sources that announce each file.
        kinds: Kinds of events that count. `deleted` removes the data partition from a job that has not started.
        where: Filter on the events.
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
            # The key is the data partition, so that a second event about it does not count again.
            return event.data_partition
        if self.unit == "files":
            return listed(event.data_partition, event.version or "")
        return event.dedupe_id

    def shortfall(self, count: int) -> str | None:
        short_by = self.count - count
        return f"{short_by} of {self.count} {_WORDS[self.unit]} of {self.dataset}" if short_by > 0 else None
