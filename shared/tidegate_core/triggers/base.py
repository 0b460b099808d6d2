"""What every trigger answers. Time triggers name instants; event triggers name the events that count, and what is missing.

A trigger is a definition and pure questions about it; cursors, evidence and seals belong to the shard's actor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias

from pydantic import model_validator

from tidegate_core.model.document import Document
from tidegate_core.model.durations import Duration
from tidegate_core.model.facts import Fact
from tidegate_core.model.instants import Instant, InstantField
from tidegate_core.model.planned import LANGUAGE, planned
from tidegate_core.model.problems import refused

Correlate: TypeAlias = Literal["data_partition"]
OnTimeout: TypeAlias = Literal["abort"]

PLANNED_FOR_TIME = planned(LANGUAGE, "exclude", "jitter")
PLANNED_FOR_EVENTS = planned(
    LANGUAGE,
    "max_wait",
    "settle",
    "max_settle",
    "at_least_every",
    "allow_empty",
    "late",
    "ttl",
    "timeout",
    "on_timeout",
)


class TimeTrigger(Document, ABC):
    """A trigger that is a sequence of instants; `start` is inclusive, `end` exclusive."""

    PLANNED_FIELDS: ClassVar = PLANNED_FOR_TIME
    FIELD_HINTS: ClassVar = {"tz": "the field is called zone", "timezone": "the field is called zone"}

    start: InstantField | None = None
    end: InstantField | None = None

    @model_validator(mode="after")
    def _start_before_end(self) -> Self:
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise refused("is not after start", field="end", hint="end is exclusive")
        return self

    def next_after(self, after: Instant, identity: str) -> Instant | None:
        """Returns the first nominal instant strictly after `after` and inside of `start`..`end`.

        Args:
            after: The last scheduled nominal, never the present: a late look must not lose an occurrence.
            identity: The schedule's own id, for triggers that spread their load by a stable hash of it.
        """
        floor = after if self.start is None else max(after, self.start - 1)
        following = self._following(floor, identity)
        if following is None or (self.end is not None and following >= self.end):
            return None
        return following

    def first_after_activation(self, activated: Instant, identity: str = "") -> Instant | None:
        """Returns the first nominal of a schedule that counts from `activated` on; what lies before was never due."""
        return self.next_after(activated - 1, identity)

    def interval(self, nominal: Instant) -> tuple[Instant, Instant]:
        """Returns the data interval [previous nominal, nominal).

        It is contiguous with the one before, and blind to `start`, so that the first occurrence covers as much as the
        others. Empty where there is no previous nominal.
        """
        previous = self._preceding(nominal)
        return (nominal if previous is None else previous, nominal)

    @abstractmethod
    def smallest_gap_ms(self) -> Duration | None:
        """Returns the shortest time between two occurrences, None for a trigger that fires once."""

    @abstractmethod
    def _following(self, after: Instant, identity: str) -> Instant | None:
        """Returns the first instant strictly after `after`, without regard to `start` and `end`."""

    @abstractmethod
    def _preceding(self, before: Instant) -> Instant | None:
        """Returns the last instant strictly before `before`, without regard to `start` and `end`."""


class EventTrigger(Document, ABC):
    """A trigger that counts events: one latch per leaf, satisfied when nothing is missing.

    Attributes:
        correlate: What one AND state is kept for; None is one state for the schedule.
        on_timeout: What happens when `timeout_ms` has passed since the first latch.
    """

    if TYPE_CHECKING:
        # Only for the type checker: composites have these as fields, and pydantic lets no field hide an attribute.
        @property
        def correlate(self) -> Correlate | None: ...

        @property
        def on_timeout(self) -> OnTimeout: ...

    @property
    @abstractmethod
    def timeout_ms(self) -> Duration | None:
        """How long evidence may wait for the rest from the first latch on; None is for ever."""

    @abstractmethod
    def leaves(self) -> tuple[LeafTrigger, ...]:
        """Returns what counts events, in the order of `missing`'s counts."""

    @abstractmethod
    def missing(self, counts: Sequence[int]) -> str | None:
        """Returns why it has not fired, in words, or None when it is satisfied.

        Args:
            counts: Distinct entries per leaf, as many as `leaves` has.
        """


class LeafTrigger(EventTrigger, ABC):
    """An event trigger that counts events of one kind about one thing. Alone it has no time-out: rare feeds add up."""

    PLANNED_FIELDS: ClassVar = PLANNED_FOR_EVENTS

    correlate: ClassVar[None] = None
    on_timeout: ClassVar[OnTimeout] = "abort"

    @property
    def timeout_ms(self) -> Duration | None:
        return None

    def leaves(self) -> tuple[LeafTrigger, ...]:
        return (self,)

    def missing(self, counts: Sequence[int]) -> str | None:
        return self.shortfall(counts[0])

    @property
    @abstractmethod
    def needed(self) -> int:
        """How many distinct entries satisfy it."""

    @abstractmethod
    def event_key(self, namespace: str) -> str:
        """Returns the key under which matching events are looked up.

        Args:
            namespace: The schedule's own.
        """

    @abstractmethod
    def accepts(self, event: Fact, namespace: str) -> str | None:
        """Returns the entry that the event counts as, or None when it does not count.

        Events with the same entry count once. `namespace` is the schedule's own.
        """

    @abstractmethod
    def correlation_of(self, event: Fact) -> str:
        """Returns the key that the event is paired by; empty where the event has none."""

    @abstractmethod
    def shortfall(self, count: int) -> str | None:
        """Returns what is missing beside `count` distinct entries, or None."""
