"""Base classes of leaves that count events, and of leaves that count data events of a dataset."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from tidegate_core.language.events.events import ChangeKind, DataPartitionEvent
from tidegate_core.language.events.trigger_facts import Fact
from tidegate_core.language.triggers.latches import Terms
from tidegate_core.language.triggers.on_event.event_filter import Filter
from tidegate_core.language.triggers.trigger import PLANNED_FOR_EVENTS, AtLeastEveryField, LeafTrigger, Take
from tidegate_core.language.values.document import PLATFORM, AtMost, Flag, planned
from tidegate_core.language.values.durations import DurationField, format_duration
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.names import DatasetId
from tidegate_core.language.values.problems import refused

DEFAULT_MAX_SETTLE_MS = 24 * 3_600_000


class CountingLeaf(LeafTrigger, ABC):
    """A leaf that counts events of one kind. Outside of composites it has no time-out, so that events of rare sources add up.

    Attributes:
        take: Events for the job. `all`: all events until the job starts. `exactly_n`: the first needed ones; the next job
            takes the rest.
        max_wait: Longest time after the first event; then the trigger fires with the events so far.
        settle: Quiet time without new events after which a satisfied trigger fires.
        max_settle: Longest time between satisfaction and fire if events keep coming; 24 h by default.
    """

    PLANNED_FIELDS: ClassVar = PLANNED_FOR_EVENTS
    LATER_FIELDS: ClassVar = frozenset({"take", "allow_empty"})
    ALONE: ClassVar = ("take", "max_wait", "settle", "max_settle", "at_least_every", "allow_empty")
    """Fields that a leaf may have only outside of composites: inside, it would be unclear which job they create."""

    take: Take = "all"
    max_wait: DurationField | None = Field(default=None, gt=0)
    settle: DurationField | None = Field(default=None, gt=0)
    max_settle: DurationField | None = Field(default=None, gt=0)
    at_least_every: AtLeastEveryField | None = None
    allow_empty: Flag = False

    @model_validator(mode="after")
    def _deadlines_fit(self) -> Self:
        if self.max_settle is not None and self.settle is None:
            raise refused("needs settle", field="max_settle", hint="it bounds how long settle may wait")
        if self.max_settle is not None and self.settle is not None and self.max_settle < self.settle:
            raise refused(
                "is shorter than settle", field="max_settle", hint=f"give it at least {format_duration(self.settle)}"
            )
        if self.take == "exactly_n" and self.settle is not None:
            raise refused("has nothing to settle with take: exactly_n", field="settle", hint="leave one of them out")
        if self.allow_empty and self.at_least_every is None:
            raise refused("needs at_least_every", field="allow_empty", hint="nothing else fires without events")
        return self

    def outermost_fields(self) -> tuple[str, ...]:
        """Returns the fields of the leaf that are set and that only a trigger outside of composites may have."""
        known = type(self).model_fields
        return tuple(name for name in self.ALONE if getattr(self, name) != known[name].get_default())

    def terms(self, first_at: Instant) -> Terms:
        settles = self.settle is not None
        return Terms(
            ttls=self.ttls(None),
            max_wait=self.max_wait,
            settle=self.settle,
            max_settle=(self.max_settle or DEFAULT_MAX_SETTLE_MS) if settles else None,
        )


PLANNED_FOR_DATA = {**PLANNED_FOR_EVENTS, **planned(PLATFORM, "source", "event_time", "delay")}


class DatasetLeaf(CountingLeaf, ABC):
    """A leaf that counts data events of `dataset`, by default those with kind `created`."""

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
            raise refused("names only deleted, which counts nothing", hint="add created, or another kind that counts")
        return kinds

    def event_key(self, namespace: str) -> str:
        return f"data/{namespace}/{self.dataset}"

    def accepts(self, event: Fact, namespace: str) -> str | None:
        if not isinstance(event, DataPartitionEvent) or event.event_key != self.event_key(namespace):
            return None
        if event.kind not in self.kinds:
            return None
        # A deletion may have fewer fields than the event of the creation, so no filter applies to it.
        meant = self.where is None or event.kind == "deleted" or self.where.holds_for(event)
        return self.key_of(event) if meant else None

    def takes_back(self, event: Fact) -> bool:
        return isinstance(event, DataPartitionEvent) and event.kind == "deleted"

    def correlation_of(self, event: Fact) -> str:
        return event.data_partition if isinstance(event, DataPartitionEvent) else ""

    @abstractmethod
    def key_of(self, event: DataPartitionEvent) -> str:
        """Returns the key of the entry for an event."""


def listed(*parts: str) -> str:
    """Returns several texts as one unambiguous text."""
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
