"""Base classes of triggers. A time trigger names instants; an event trigger names the events that count and those it misses.

A trigger is a definition with pure functions. It holds no state: cursors, evidence and seals belong to the shard's owner.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tidegate_core.language.events.trigger_facts import Fact
from tidegate_core.language.time.wall_clock import Skip, WallClock, note_on
from tidegate_core.language.triggers.exclusions import (
    ALL_MINUTES,
    MAX_EXCLUSIONS,
    Exclusion,
    Span,
    excluded_dates,
    excluded_span,
)
from tidegate_core.language.triggers.latches import Terms
from tidegate_core.language.triggers.search import (
    DAYS_PASSED_OVER,
    STEPS_PER_SEARCH,
    Minutes,
    Next,
    Search,
    ahead,
    back,
    minutes_left_out,
)
from tidegate_core.language.values.document import PLATFORM, AtMost, Document, Whole, planned
from tidegate_core.language.values.durations import (
    NO_END,
    Duration,
    DurationField,
    EndlessDurationField,
    format_duration,
)
from tidegate_core.language.values.instants import LATEST_INSTANT, Instant, InstantField
from tidegate_core.language.values.problems import refused

Correlate: TypeAlias = Literal["data_partition"]

Take: TypeAlias = Literal["all", "exactly_n"]

LONGEST_FLEXIBLE_MS = 24 * 3_600_000

_CATCHUP = "it belongs next to the trigger, into the schedule's catchup"
PLANNED_FOR_EVENTS = planned(PLATFORM, "late", "absent", "prefer")
SHORTEST_AT_LEAST_EVERY_MS = 60_000
"""Shortest `at_least_every`. Like a time trigger it creates jobs without events, but several jobs a minute have no use."""


def _long_enough(every: Duration) -> Duration:
    # A bound of the field would be fixed with the class. Simulated worlds that last a minute lower this limit.
    if every < SHORTEST_AT_LEAST_EVERY_MS:
        raise refused(f"has to be at least {format_duration(SHORTEST_AT_LEAST_EVERY_MS)}")
    return every


AtLeastEveryField = Annotated[DurationField, AfterValidator(_long_enough)]


class TimeTrigger(Document, ABC):
    """A trigger on a sequence of instants. `start` is inclusive, `end` exclusive.

    Attributes:
        exclude: Instants that are no occurrences.
        max_fires: Number of occurrences of one version of the schedule; then the trigger stops.
        flexible: Span after the nominal time within which each occurrence starts. A hash decides the instant, so it is fixed.
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

    def seek(self, after: Instant, identity: str, search: Search) -> Next:
        """Returns the first nominal time strictly after `after`, or the bound that the search reached.

        To continue, the caller passes the millisecond before the bound as `after`. Each search then gets further, and the
        last one finds the same instant as a search without a limit.

        Args:
            after: Last scheduled nominal time. The present would be wrong: a late check would lose an occurrence.
            identity: Id of the schedule, for triggers that spread their load by a stable hash of it.
            search: Remaining steps, shared by all searches of the caller.
        """
        since = after if self.start is None else max(after, self.start - 1)
        if search.is_used_up:
            return Next(since + 1, is_bound=True, since=since)
        found = self.next_after(after, identity, search)
        return Next(found, since=since) if search.cut_at is None else Next(search.cut_at, is_bound=True, since=since)

    def next_after(self, after: Instant, identity: str, search: Search | None = None) -> Instant | None:
        """Returns the first nominal time strictly after `after` that is within `start`..`end` and not excluded.

        An owner must call `seek` instead: this search has no limit by default and would block the shard.

        Args:
            after: As for `seek`.
            identity: As for `seek`.
            search: Remaining steps, unlimited by default. If the search `gave_up`, None means "unknown".
        """
        search = search or Search()
        search.cut_at = None
        begin = floor = after if self.start is None else max(after, self.start - 1)
        latest = min(floor + search.ahead, LATEST_INSTANT)
        while True:
            # The first step is always taken, so that a search in pieces reaches its end.
            if not search.takes(self.comparisons) and floor > begin:
                search.cut_at = floor + 1
                return None
            following = self._following(floor, identity, search)
            if following is None or not self.is_within(following):
                return None
            span = self.excluded_at(following, identity)
            if span is None:
                return following
            floor = ahead(span, self.kept(identity), search, self.comparisons, DAYS_PASSED_OVER).end - 1
            if floor > latest:
                search.left_out = True
                return None

    def first_after_activation(
        self, activated: Instant, identity: str = "", search: Search | None = None
    ) -> Instant | None:
        """Returns the first nominal time of a schedule that is activated at `activated`. Earlier instants were never due."""
        return self.next_after(self.counts_from(activated) - 1, identity, search)

    def counts_from(self, activated: Instant) -> Instant:
        """Returns the first instant that counts for a schedule that is activated at `activated`."""
        return activated

    def interval(self, nominal: Instant, identity: str, since: Instant | None = None) -> tuple[Instant, Instant]:
        """Returns the data interval [previous nominal time, nominal time).

        Consecutive intervals are contiguous. The interval ignores `start`, so that the first occurrence covers as much as the
        others. It is empty if there is no previous nominal time.

        Args:
            nominal: Instant of the trigger.
            identity: Id of the schedule.
            since: Instant after which no instant precedes `nominal`, if known from a forward search; saves the search back.
        """
        previous = self.last_before(nominal if since is None else since + 1, identity)
        return (nominal if previous is None else previous, nominal)

    def last_before(self, before: Instant, identity: str, search: Search | None = None) -> Instant | None:
        """Returns the last instant strictly before `before` that is not excluded. Ignores `start` and `end`.

        The search is one piece of at most 50,000 comparisons (0.1 s, or 0.25 s for `times`). Only exclusions of decades by
        minutes need so many. A caller that only needs instants since a known one sets the search's `floor`. The first
        occurrence of a version needs the whole search for its data interval; a later one has the result of the forward search.
        """
        search = search or Search(STEPS_PER_SEARCH)
        while before > search.floor and search.takes(self.comparisons):
            preceding = self._preceding(before, identity, search)
            if preceding is None or preceding < search.floor:
                return None
            span = self.excluded_at(preceding, identity)
            if span is None:
                return preceding
            before = back(span, self.kept(identity), search, self.comparisons, DAYS_PASSED_OVER).begin
        return None

    def named_after(self, floor: Instant, identity: str, search: Search) -> Instant | None:
        """Returns the first instant strictly after `floor` within `start`..`end`, excluded or not."""
        following = self._following(floor if self.start is None else max(floor, self.start - 1), identity, search)
        return following if following is not None and self.is_within(following) else None

    def named_before(self, before: Instant, identity: str, search: Search) -> Instant | None:
        """Returns the last instant strictly before `before` within `start`..`end`, excluded or not."""
        preceding = self._preceding(before if self.end is None else min(before, self.end), identity, search)
        return preceding if preceding is not None and self.is_within(preceding) else None

    def names(self, instant: Instant, identity: str) -> bool:
        """Whether the trigger names an instant, within `start`..`end` and not excluded. The check needs no search."""
        is_named = self.would_name(instant, identity)
        return is_named and self.is_within(instant) and self.excluded_at(instant, identity) is None

    def would_name(self, instant: Instant, identity: str) -> bool:
        """Whether the trigger names an instant, without regard to `start`, `end` and `exclude`."""
        return self._following(instant - 1, identity, Search()) == instant

    def fires_left(self, fires: int) -> int | None:
        """Returns how many occurrences remain after `fires` occurrences; None if there is no bound."""
        return None if self.max_fires is None else max(0, self.max_fires - fires)

    def is_within(self, instant: Instant) -> bool:
        return (self.start is None or instant >= self.start) and (self.end is None or instant < self.end)

    def excluded_at(self, instant: Instant, identity: str = "", inherited: tuple[Exclusion, ...] = ()) -> Span | None:
        """Returns the excluded span around the instant, or None.

        The first instant after a gap can stand for local times in the gap. It is excluded only if all of them are excluded.

        Args:
            instant: Instant that the trigger names.
            identity: Id of the schedule.
            inherited: Exclusions of the enclosing trigger, which apply as well.
        """
        exclusions = (*(self.exclude or ()), *inherited)
        if not exclusions:
            return None
        # Ranges of dates come first: they skip years in one step.
        return excluded_dates(exclusions, self.own_zone, instant) or excluded_span(exclusions, self.own_zone, instant)

    def kept(self, identity: str) -> Minutes:
        """Returns a function from a UTC day to its minutes that may have an occurrence: named ones that are not excluded."""

        def kept_on(day: int) -> int:
            out = 0 if self.exclude is None else minutes_left_out(self.exclude, self.own_zone, day)
            if out:
                out &= ~self.gap_ends_on(day)
            return 0 if out == ALL_MINUTES else self.minutes_of(day, identity) & ~out

        return kept_on

    def minutes_of(self, day: int, identity: str) -> int:
        """Returns the minutes of a UTC day, counted from 1970-01-01, that the trigger may name: bit n is minute n.

        Every named minute must be among them, without regard to `start` and `end`. All minutes is always a correct answer.
        """
        return ALL_MINUTES

    def is_behind_gap(self, instant: Instant) -> bool:
        """Whether the instant may stand for local times that a clock change skips."""
        return False

    def gap_ends_on(self, day: int) -> int:
        """Returns the minutes of a UTC day in which a gap ends. Whether they are excluded depends on the local times in the gap."""
        return 0

    def skips(
        self, after: Instant, until: Instant, identity: str, inherited: tuple[Exclusion, ...] = ()
    ) -> tuple[Skip, ...]:
        """Returns the skipped local times that do not fire, for clock changes in `after < instant <= until`.

        Excluded local times are not among them. `identity` and `inherited` are as for `excluded_at`.
        """
        return ()

    def note(self, instant: Instant, identity: str) -> str:
        """Returns how a clock change affects a nominal time, as a text for users; empty if none does."""
        clock = self.wall_clock(identity)
        return "" if clock is None else note_on(clock.times, clock.zone, instant, clock.policy)

    def reading(self) -> str:
        """Returns how the definition was read, if users may expect another reading; otherwise empty."""
        return ""

    @property
    def comparisons(self) -> int:
        """Number of comparisons for one instant, and for one skipped day."""
        return len(self.exclude or ())

    @property
    def own_zone(self) -> str:
        """Zone of exclusions that name none."""
        return "UTC"

    def zone_at(self, instant: Instant, identity: str) -> str:
        """Returns the zone in which the user wrote the time of a nominal time."""
        return self.own_zone

    def wall_clock(self, identity: str) -> WallClock | None:
        """Returns the trigger's wall clock with its local times; None for elapsed time and single instants."""
        return None

    @abstractmethod
    def smallest_gap_ms(self, identity: str = "") -> Duration | None:
        """Returns the shortest time between two occurrences; None for a trigger that fires once."""

    @abstractmethod
    def _following(self, after: Instant, identity: str, search: Search) -> Instant | None:
        """Returns the first instant strictly after `after`, without regard to `start`, `end` and `exclude`."""

    @abstractmethod
    def _preceding(self, before: Instant, identity: str, search: Search) -> Instant | None:
        """Returns the last instant strictly before `before`, without regard to `start`, `end` and `exclude`."""


UNPAIRED = ""
"""Correlation value of evidence that is not paired by a value."""


class EventTrigger(Document, ABC):
    """A trigger that counts events. Each leaf has one latch; the trigger is satisfied when no leaf misses anything.

    Attributes:
        correlate: Value by which evidence is separated; None for one state of the schedule.
        at_least_every: Longest time between two jobs: after it a job is created with the events so far. Manual jobs count too.
        allow_empty: Whether `at_least_every` creates a job without any event as well.
    """

    if TYPE_CHECKING:
        # For the type checker only: some kinds have these as fields, and in pydantic a field must not shadow an attribute.
        @property
        def type(self) -> str: ...

        @property
        def correlate(self) -> Correlate | None: ...

        @property
        def at_least_every(self) -> Duration | None: ...

        @property
        def allow_empty(self) -> bool: ...

        @property
        def take(self) -> Take: ...

    @model_serializer(mode="wrap")
    def _stored(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        left_out = self.left_out()
        return {name: value for name, value in fields.items() if name not in left_out}

    @abstractmethod
    def leaves(self) -> tuple[LeafTrigger, ...]:
        """Returns the leaves that count events, in the order of the counts for `missing`."""

    @abstractmethod
    def missing(self, counts: Sequence[int]) -> str | None:
        """Returns why the trigger has not fired, as a text; None if it is satisfied.

        Args:
            counts: Count of each leaf in its unit, in the order of `leaves`.
        """

    @abstractmethod
    def is_satisfied_by(self, counts: Sequence[int]) -> bool:
        """Whether nothing is `missing`. It makes no text, because it is called for each entry of a job's evidence."""

    def shortfalls(self, counts: Sequence[int]) -> tuple[str, ...]:
        """Returns what each leaf still misses, as texts, for a job that starts with incomplete evidence."""
        pairs = zip(self.leaves(), counts, strict=True)
        return tuple(text for leaf, count in pairs if (text := leaf.shortfall(count)) is not None)

    @abstractmethod
    def ttls(self, together: Duration | None) -> tuple[Duration | None, ...]:
        """Returns for each leaf how long its latch holds; None for ever.

        Args:
            together: Default for leaves without `ttl` in a composite that needs several children; None elsewhere.
        """

    @abstractmethod
    def terms(self, first_at: Instant) -> Terms:
        """Returns the deadlines of evidence whose first entry was appended at `first_at`."""

    @abstractmethod
    def group_of(self, leaf: int, event: Fact, at: Instant) -> str:
        """Returns the key of the evidence to which an event belongs; empty if the schedule has only one.

        Args:
            leaf: Index of the leaf that counts the event.
            event: The event.
            at: Append time of the event.
        """

    def group_of_tick(self, at: Instant) -> str:
        """Returns the key of the evidence to which a tick of a time leaf belongs."""
        return ""

    @property
    def opens_by_tick(self) -> bool:
        """Whether each tick opens separate evidence (`driver: time`) instead of setting a latch."""
        return False

    def paired_by(self, leaf: int, event: Fact) -> str | None:
        """Returns the event's correlation value; `UNPAIRED` if there is none; None if the key of its evidence is the value."""
        return self.leaves()[leaf].correlation_of(event) if self.correlate else UNPAIRED


class LeafTrigger(EventTrigger, ABC):
    """An event trigger without children. It counts events of one kind, or instants.

    Attributes:
        ttl: Time for which the counted events hold, from the first one. The default is for ever for a single leaf; within
            `all_of` and `at_least` the time-out, or 24 h if the time-out does not end the wait.
    """

    COUNT_FIELD: ClassVar[str] = "count"
    """Name of the field with the needed number."""
    PAIRS: ClassVar[bool] = True
    """Whether one event can satisfy the leaf, so that `correlate` can pair it with one event of another leaf."""
    OF_TIME: ClassVar[bool] = False
    """Whether the leaf counts instants."""

    correlate: ClassVar[None] = None

    ttl: EndlessDurationField | None = None

    def outermost_fields(self) -> tuple[str, ...]:
        """Returns the fields of the leaf that are set and that only a trigger outside of composites may have."""
        return ()

    def leaves(self) -> tuple[LeafTrigger, ...]:
        return (self,)

    def missing(self, counts: Sequence[int]) -> str | None:
        return self.shortfall(counts[0])

    def is_satisfied_by(self, counts: Sequence[int]) -> bool:
        return counts[0] >= self.needed

    def ttls(self, together: Duration | None) -> tuple[Duration | None, ...]:
        own = together if self.ttl is None else self.ttl
        return (None if own == NO_END else own,)

    def group_of(self, leaf: int, event: Fact, at: Instant) -> str:
        return self.own_group_of(event)

    def paired_by(self, leaf: int, event: Fact) -> str | None:
        # The key of separate evidence, such as a run id, already identifies it for users.
        return None

    def own_group_of(self, event: Fact) -> str:
        """Returns the key of separate evidence for an event, if each event fires this leaf; otherwise empty."""
        return ""

    @property
    @abstractmethod
    def needed(self) -> int:
        """Count that satisfies the leaf, in its unit."""

    @abstractmethod
    def event_key(self, namespace: str) -> str:
        """Returns the key by which the leaf subscribes to events.

        Args:
            namespace: Namespace of the schedule.
        """

    @abstractmethod
    def accepts(self, event: Fact, namespace: str) -> str | None:
        """Returns the key of the entry for an event, or None if the event does not count.

        Events with the same key count once. `namespace` is the schedule's namespace.
        """

    @property
    def hears_starts(self) -> bool:
        """Whether the leaf counts starts of runs: they are published only if a schedule subscribes to them."""
        return False

    def weight_of(self, event: Fact) -> int:
        """Returns the weight of an accepted event."""
        return 1

    def takes_back(self, event: Fact) -> bool:
        """Whether an accepted event says that its data partition was deleted, so that its entries no longer count."""
        return False

    def starts_anew(self, event: Fact) -> bool:
        """Whether an accepted event replaces all earlier entries of its data partition."""
        return False

    @abstractmethod
    def correlation_of(self, event: Fact) -> str:
        """Returns the correlation value of the event; empty if the event has none."""

    @abstractmethod
    def shortfall(self, count: int) -> str | None:
        """Returns what the leaf misses at a count of `count`, as a text; None if it misses nothing."""
