"""What a composite may consist of: each kind of trigger that counts events, and composites again."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from tidegate_core.model.document import AtMost
from tidegate_core.model.planned import PLATFORM, PlannedKinds, planned
from tidegate_core.triggers.all_of import AllOfTrigger
from tidegate_core.triggers.any_of import AnyOfTrigger
from tidegate_core.triggers.at_least import AtLeastTrigger
from tidegate_core.triggers.composite import MAX_LEAVES
from tidegate_core.triggers.custom_event import CustomEventTrigger
from tidegate_core.triggers.data_partitions import DataPartitionsTrigger
from tidegate_core.triggers.data_size import DataSizeTrigger
from tidegate_core.triggers.run_status import RunStatusTrigger

_TIMES = planned(
    PLATFORM,
    "cron",
    "every",
    "at",
    "times",
    hint="only what counts events meets in a composite; at_least_every and time_window bound when it runs",
)
_OTHERS = planned(PLATFORM, "then", "absent", "manual")

Node: TypeAlias = Annotated[
    DataPartitionsTrigger
    | DataSizeTrigger
    | CustomEventTrigger
    | RunStatusTrigger
    | AllOfTrigger
    | AnyOfTrigger
    | AtLeastTrigger,
    Field(discriminator="type"),
    PlannedKinds({**_TIMES, **_OTHERS}),
]

Children: TypeAlias = Annotated[tuple[Node, ...], Field(min_length=2), AtMost(MAX_LEAVES)]

for _composite in (AllOfTrigger, AnyOfTrigger, AtLeastTrigger):
    # A composite consists of composites: only here are all of them known.
    _composite.model_rebuild(_types_namespace={"Children": Children})
