"""The union of all triggers. A new kind needs a new file, its name here, and its tests."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from tidegate_core.language.triggers.composite.all_of import AllOfTrigger
from tidegate_core.language.triggers.composite.any_of import AnyOfTrigger
from tidegate_core.language.triggers.composite.at_least import AtLeastTrigger
from tidegate_core.language.triggers.composite.composite_nodes import Node
from tidegate_core.language.triggers.on_event.custom_event import CustomEventTrigger
from tidegate_core.language.triggers.on_event.data_partitions import DataPartitionsTrigger
from tidegate_core.language.triggers.on_event.data_size import DataSizeTrigger
from tidegate_core.language.triggers.on_event.run_status import RunStatusTrigger
from tidegate_core.language.triggers.on_time.at import AtTrigger
from tidegate_core.language.triggers.on_time.cron import CronTrigger
from tidegate_core.language.triggers.on_time.every import EveryTrigger, every_macro_as_every
from tidegate_core.language.triggers.on_time.times import TimesTrigger
from tidegate_core.language.triggers.trigger import EventTrigger, LeafTrigger, TimeTrigger
from tidegate_core.language.values.document import PLATFORM, PlannedKinds, planned

__all__ = [
    "AllOfTrigger",
    "AnyOfTrigger",
    "AtLeastTrigger",
    "AtTrigger",
    "CronTrigger",
    "CustomEventTrigger",
    "DataPartitionsTrigger",
    "DataSizeTrigger",
    "EventTrigger",
    "EveryTrigger",
    "LeafTrigger",
    "Node",
    "RunStatusTrigger",
    "TimeTrigger",
    "TimesTrigger",
    "Trigger",
]


Trigger: TypeAlias = Annotated[
    CronTrigger
    | EveryTrigger
    | AtTrigger
    | TimesTrigger
    | DataPartitionsTrigger
    | DataSizeTrigger
    | CustomEventTrigger
    | RunStatusTrigger
    | AllOfTrigger
    | AnyOfTrigger
    | AtLeastTrigger,
    Field(discriminator="type"),
    AfterValidator(every_macro_as_every),
    PlannedKinds(planned(PLATFORM, "then", "absent", "manual")),
]
