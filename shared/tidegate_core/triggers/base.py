"""What every trigger answers. Time triggers name instants; event triggers name the events that count, and what is missing.

A trigger is a definition and pure questions about it; cursors, evidence and seals belong to the shard's actor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from tidegate_core.model.document import AtMost, Document, Whole
from tidegate_core.model.durations import Duration, DurationField
from tidegate_core.model.facts import Fact
from tidegate_core.model.instants import TEN_YEARS_MS, Instant, InstantField
from tidegate_core.model.planned import LANGUAGE, planned
from tidegate_core.model.problems import refused
from tidegate_core.time.wall_clock import Skip, WallClock, note_on, skips_between
from tidegate_core.triggers.exclusions import MAX_EXCLUSIONS, Exclusion, Span, excluded_span

Correlate: TypeAlias = Literal["data_partition"]
OnTimeout: TypeAlias = Literal["abort"]

LONGEST_FLEXIBLE_MS = 24 * 3_600_000
EXCLUDED_IN_A_ROW = 20_000
"""Excluded instants, or excluded days, after which a trigger names nothing more: without end the search would never return."""

_CATCHUP = "it belongs beside the trigger, into the schedule's catchup"
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
    """A trigger that is a sequence of instants; `start` is inclusive, `end` exclusive.

    Attributes:
        exclude: Instants that are no occurrences.
        max_fires: Occurrences of one version of the schedule; then it has run its course.
        flexible: Each occurrence waits for an instant of its own within this time from its nominal on, always the same one.
    """

    FIELD_HINTS: ClassVar = {
        "tz": "the field is called zone",
        "timezone": "the field is called zone",
        "jitter": "the field is called flexible",
        "count": "the field is called max_fires",
        **dict.fromkeys(("catchup", "on_create", "after_outage", "after_pause", "after_update"), _CATCHUP),
    }

    start: InstantField | None = None
    end: InstantField | None = None
    exclude: Annotated[tuple[Exclusion, ...], AtMost(MAX_EXCLUSIONS)] | None = None
    max_fires: Annotated[Whole, Field(ge=1)] | None = None
    flexible: Annotated[DurationField, Field(gt=0, le=LONGEST_FLEXIBLE_MS)] | None = None

    @model_validator(mode="after")
    def _start_before_end(self) -> Self:
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise refused("is not after start", field="end", hint="end is exclusive")
        return self

    def next_after(self, after: Instant, identity: str) -> Instant | None:
        """Returns the first nominal instant strictly after `after`, inside of `start`..`end` and not excluded.

        Args:
            after: The last scheduled nominal, never the present: a late look must not lose an occurrence.
            identity: The schedule's own id, for triggers that spread their load by a stable hash of it.
        """
        floor = after if self.start is None else max(after, self.start - 1)
        latest = floor + TEN_YEARS_MS
        for _ in range(EXCLUDED_IN_A_ROW):
            following = self._following(floor, identity)
            if following is None or not self.is_within(following):
                return None
            span = self.excluded_at(following)
            if span is None:
                return following
            floor = span.end - 1
            if floor > latest:
                return None
        return None

    def first_after_activation(self, activated: Instant, identity: str = "") -> Instant | None:
        """Returns the first nominal of a schedule that counts from `activated` on; what lies before was never due."""
        return self.next_after(activated - 1, identity)

    def interval(self, nominal: Instant, identity: str) -> tuple[Instant, Instant]:
        """Returns the data interval [previous nominal, nominal).

        It is contiguous with the one before, and blind to `start`, so that the first occurrence covers as much as the
        others. Empty where there is no previous nominal.
        """
        previous = self.last_before(nominal, identity)
        return (nominal if previous is None else previous, nominal)

    def last_before(self, before: Instant, identity: str) -> Instant | None:
        """Returns the last instant strictly before `before` that is not excluded, without regard to `start` and `end`."""
        for _ in range(EXCLUDED_IN_A_ROW):
            preceding = self._preceding(before, identity)
            if preceding is None:
                return None
            span = self.excluded_at(preceding)
            if span is None:
                return preceding
            before = span.begin
        return None

    def fires_left(self, fires: int) -> int | None:
        """Returns how many occurrences are still to come after `fires`; None is without a bound."""
        return None if self.max_fires is None else max(0, self.max_fires - fires)

    def is_within(self, instant: Instant) -> bool:
        return (self.start is None or instant >= self.start) and (self.end is None or instant < self.end)

    def excluded_at(self, instant: Instant) -> Span | None:
        """Returns the span around the instant that is left out, or None."""
        return None if self.exclude is None else excluded_span(self.exclude, self.own_zone, instant)

    def skips(self, after: Instant, until: Instant, identity: str) -> tuple[Skip, ...]:
        """Returns the local times that clock changes left out in `after < instant <= until` and that fire nowhere."""
        clock = self.wall_clock(identity)
        if clock is None:
            return ()
        found = skips_between(clock.times, clock.zone, after, until, clock.policy)
        return tuple(skip for skip in found if self.is_within(skip.instant) and self.excluded_at(skip.instant) is None)

    def note(self, instant: Instant, identity: str) -> str:
        """Returns what a clock change has to do with a nominal, in words for people; empty when nothing has."""
        clock = self.wall_clock(identity)
        return "" if clock is None else note_on(clock.times, clock.zone, instant, clock.policy)

    def reading(self) -> str:
        """Returns how the definition was read, where that surprises people; empty where it says it all itself."""
        return ""

    @property
    def own_zone(self) -> str:
        """The zone that exclusions mean which name none."""
        return "UTC"

    def zone_at(self, instant: Instant, identity: str) -> str:
        """Returns the zone in which a nominal is a time that people wrote down."""
        return self.own_zone

    def wall_clock(self, identity: str) -> WallClock | None:
        """Returns the wall clock that it reads and the local times on it; None for elapsed time and single instants."""
        return None

    @abstractmethod
    def smallest_gap_ms(self, identity: str = "") -> Duration | None:
        """Returns the shortest time between two occurrences, None for a trigger that fires once."""

    @abstractmethod
    def _following(self, after: Instant, identity: str) -> Instant | None:
        """Returns the first instant strictly after `after`, without regard to `start`, `end` and `exclude`."""

    @abstractmethod
    def _preceding(self, before: Instant, identity: str) -> Instant | None:
        """Returns the last instant strictly before `before`, without regard to `start`, `end` and `exclude`."""


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
