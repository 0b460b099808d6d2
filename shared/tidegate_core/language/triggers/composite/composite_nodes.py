"""What a composite may consist of: each kind of trigger that counts events, time triggers as latches, and composites again."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from tidegate_core.language.triggers.composite.all_of import AllOfTrigger
from tidegate_core.language.triggers.composite.any_of import AnyOfTrigger
from tidegate_core.language.triggers.composite.at_least import AtLeastTrigger
from tidegate_core.language.triggers.composite.composite import MAX_LEAVES
from tidegate_core.language.triggers.composite.tick_leaf import AtLeaf, CronLeaf, EveryLeaf, TimesLeaf
from tidegate_core.language.triggers.on_event.custom_event import CustomEventTrigger
from tidegate_core.language.triggers.on_event.data_partitions import DataPartitionsTrigger
from tidegate_core.language.triggers.on_event.data_size import DataSizeTrigger
from tidegate_core.language.triggers.on_event.run_status import RunStatusTrigger
from tidegate_core.language.values.document import AtMost
from tidegate_core.language.values.planned_features import PLATFORM, PlannedKinds, planned

Node: TypeAlias = Annotated[
    DataPartitionsTrigger
    | DataSizeTrigger
    | CustomEventTrigger
    | RunStatusTrigger
    | CronLeaf
    | EveryLeaf
    | AtLeaf
    | TimesLeaf
    | AllOfTrigger
    | AnyOfTrigger
    | AtLeastTrigger,
    Field(discriminator="type"),
    PlannedKinds(planned(PLATFORM, "then", "absent", "manual")),
]

Children: TypeAlias = Annotated[tuple[Node, ...], Field(min_length=2), AtMost(MAX_LEAVES)]

for _composite in (AllOfTrigger, AnyOfTrigger, AtLeastTrigger):
    # A composite consists of composites: only here are all of them known.
    _composite.model_rebuild(_types_namespace={"Children": Children})
