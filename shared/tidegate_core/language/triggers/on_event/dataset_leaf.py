"""What the leaves share that count data events of one dataset: which events are meant, and what they are paired by."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from tidegate_core.language.events.events import ChangeKind, DataPartitionEvent
from tidegate_core.language.events.trigger_facts import Fact
from tidegate_core.language.triggers.on_event.counting_leaf import CountingLeaf
from tidegate_core.language.triggers.on_event.event_filter import Filter
from tidegate_core.language.triggers.trigger import PLANNED_FOR_EVENTS
from tidegate_core.language.values.document import AtMost
from tidegate_core.language.values.names import DatasetId
from tidegate_core.language.values.planned_features import PLATFORM, planned
from tidegate_core.language.values.problems import refused

PLANNED_FOR_DATA = {**PLANNED_FOR_EVENTS, **planned(PLATFORM, "source", "event_time", "delay")}


class DatasetLeaf(CountingLeaf, ABC):
    """A leaf that counts events of `dataset`; `created` by default, other kinds where they are asked for."""

    FIELD_HINTS: ClassVar = {"kind": "the field is called kinds", "filter": "the field is called where"}

    dataset: DatasetId
    kinds: Annotated[tuple[ChangeKind, ...], Field(min_length=1), AtMost(4)] = ("created",)
    where: Filter | None = None

    @field_validator("kinds")
    @classmethod
    def _something_comes(cls, kinds: tuple[ChangeKind, ...]) -> tuple[ChangeKind, ...]:
        if len(set(kinds)) != len(kinds):
            raise refused("names a kind twice", hint="keep one")
        if kinds == ("deleted",):
            raise refused("only takes back what others have brought", hint="add created, or what else shall count")
        return kinds

    def event_key(self, namespace: str) -> str:
        return f"data/{namespace}/{self.dataset}"

    def accepts(self, event: Fact, namespace: str) -> str | None:
        if not isinstance(event, DataPartitionEvent) or event.event_key != self.event_key(namespace):
            return None
        if event.kind not in self.kinds:
            return None
        # What is deleted may say less than what came: it takes back whatever was counted of it.
        meant = self.where is None or event.kind == "deleted" or self.where.holds_for(event)
        return self.key_of(event) if meant else None

    def takes_back(self, event: Fact) -> bool:
        return isinstance(event, DataPartitionEvent) and event.kind == "deleted"

    def correlation_of(self, event: Fact) -> str:
        return event.data_partition if isinstance(event, DataPartitionEvent) else ""

    @abstractmethod
    def key_of(self, event: DataPartitionEvent) -> str:
        """Returns the entry that an event counts as."""


def listed(*parts: str) -> str:
    """Returns several texts as one that no others can be mistaken for."""
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
