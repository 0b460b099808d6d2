"""The union of all triggers. A new kind is a new file, its name here, and its tests."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from tidegate_core.model.planned import PLATFORM, PlannedKinds, planned
from tidegate_core.triggers.all_of import AllOfTrigger
from tidegate_core.triggers.any_of import AnyOfTrigger
from tidegate_core.triggers.at import AtTrigger
from tidegate_core.triggers.at_least import AtLeastTrigger
from tidegate_core.triggers.base import EventTrigger, LeafTrigger, TimeTrigger
from tidegate_core.triggers.cron import CronTrigger
from tidegate_core.triggers.custom_event import CustomEventTrigger
from tidegate_core.triggers.data_partitions import DataPartitionsTrigger
from tidegate_core.triggers.data_size import DataSizeTrigger
from tidegate_core.triggers.every import EveryTrigger
from tidegate_core.triggers.every_macro import every_macro_as_every
from tidegate_core.triggers.nodes import Node
from tidegate_core.triggers.run_status import RunStatusTrigger
from tidegate_core.triggers.times import TimesTrigger

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
