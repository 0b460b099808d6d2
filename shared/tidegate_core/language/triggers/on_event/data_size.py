"""The trigger `data_size`: fires when enough bytes or rows of a dataset have arrived, in any number of data partitions."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tidegate_core.language.events.events import DataPartitionEvent
from tidegate_core.language.events.trigger_facts import Fact
from tidegate_core.language.triggers.on_event.counting_leaf import PLANNED_FOR_DATA, CountingLeaf, DatasetLeaf, listed
from tidegate_core.language.triggers.trigger import Take
from tidegate_core.language.values.document import Whole
from tidegate_core.language.values.problems import refused
from tidegate_core.language.values.sizes import LARGEST_SIZE_BYTES, SizeField, format_size


class DataSizeTrigger(DatasetLeaf):
    """Fires when `bytes` or `rows` of `dataset` have arrived since the last fire, by the sizes in the events.

    An event without a size counts 0, but its data partition is in the manifest. A later event about the same data partition
    replaces the earlier size; an event of kind `appended` adds to it.

    Attributes:
        dataset: Dataset of the schedule's namespace.
        bytes: Size that is needed; either `bytes` or `rows` must be given.
        rows: Number of rows that is needed.
        kinds: Kinds of events that count. `deleted` removes the data partition from a job that has not started.
        where: Filter on the events.
    """

    EXAMPLE: ClassVar = {"type": "data_size", "dataset": "clicks.raw", "bytes": "100GB", "at_least_every": "4h"}
    PLANNED_FIELDS: ClassVar = PLANNED_FOR_DATA
    LATER_FIELDS: ClassVar = CountingLeaf.LATER_FIELDS | {"kinds"}
    FIELD_HINTS: ClassVar = {
        **DatasetLeaf.FIELD_HINTS,
        "size": "the field is called bytes",
        "count": "the field is called bytes or rows",
    }
    PAIRS: ClassVar = False

    type: Literal["data_size"] = "data_size"
    bytes: Annotated[SizeField, Field(ge=1)] | None = None
    rows: Annotated[Whole, Field(ge=1, le=LARGEST_SIZE_BYTES)] | None = None
    take: Take = "all"

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.bytes is None) == (self.rows is None):
            raise refused("needs either bytes or rows", hint="to wait for the first of both, use any_of")
        if self.take == "exactly_n":
            raise refused("is for triggers that count events, not bytes or rows", field="take", hint="use all")
        return self

    @property
    def needed(self) -> int:
        return (self.bytes or 0) + (self.rows or 0)

    def key_of(self, event: DataPartitionEvent) -> str:
        return listed(event.data_partition, event.dedupe_id) if event.kind == "appended" else event.data_partition

    def weight_of(self, event: Fact) -> int:
        assert isinstance(event, DataPartitionEvent)
        return (event.rows if self.bytes is None else event.bytes) or 0

    def starts_anew(self, event: Fact) -> bool:
        return isinstance(event, DataPartitionEvent) and event.kind in {"created", "replaced"}

    def shortfall(self, count: int) -> str | None:
        short_by = self.needed - count
        if short_by <= 0:
            return None
        if self.bytes is None:
            return f"{short_by} of {self.needed} rows of {self.dataset}"
        return f"{format_size(short_by)} of {format_size(self.needed)} of {self.dataset}"
