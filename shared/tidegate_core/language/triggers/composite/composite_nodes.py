"""The union of triggers inside a composite, and the trigger that remains when upstream schedules are deleted.

A composite may contain event triggers, time triggers as leaves that ticks latch, and other composites.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Annotated, TypeAlias

from pydantic import Field

from tidegate_core.language.triggers.composite.all_of import AllOfTrigger
from tidegate_core.language.triggers.composite.any_of import AnyOfTrigger
from tidegate_core.language.triggers.composite.at_least import AtLeastTrigger
from tidegate_core.language.triggers.composite.composite import MAX_LEAVES, CompositeTrigger
from tidegate_core.language.triggers.composite.ticks import AtLeaf, CronLeaf, EveryLeaf, TimesLeaf
from tidegate_core.language.triggers.on_event.custom_event import CustomEventTrigger
from tidegate_core.language.triggers.on_event.data_partitions import DataPartitionsTrigger
from tidegate_core.language.triggers.on_event.data_size import DataSizeTrigger
from tidegate_core.language.triggers.on_event.run_status import RunStatusTrigger
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.document import PLATFORM, AtMost, PlannedKinds, planned

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
    # A composite may contain composites, and all of their classes are known only here.
    _composite.model_rebuild(_types_namespace={"Children": Children})


def without(trigger: EventTrigger, namespace: str, gone: AbstractSet[str]) -> EventTrigger | None:
    """Returns the trigger without leaves for deleted schedules, or None if the trigger can never fire any more.

    A composite with a single remaining child becomes that child.

    Args:
        trigger: Trigger as defined.
        namespace: Namespace of the schedule.
        gone: Deleted schedules, as `<ns>/<name>`.
    """
    if isinstance(trigger, RunStatusTrigger):
        return None if trigger.upstream_ref(namespace) in gone else trigger
    if not isinstance(trigger, CompositeTrigger):
        return trigger
    kept = [(child, without(child, namespace, gone)) for child in trigger.triggers]
    left = tuple(after for _, after in kept if after is not None)
    if len(left) < trigger.children_needed:
        return None
    if len(left) == 1:
        return left[0]
    return trigger if all(child is after for child, after in kept) else trigger.model_copy(update={"triggers": left})
