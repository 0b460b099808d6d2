"""What every trigger answers. Time triggers name instants; event triggers name the events that count, and what is missing.

A trigger is a definition and pure questions about it; cursors, evidence and seals belong to the shard's actor.
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

_CATCHUP = "it belongs beside the trigger, into the schedule's catchup"
PLANNED_FOR_EVENTS = planned(PLATFORM, "late", "absent", "prefer")
SHORTEST_AT_LEAST_EVERY_MS = 60_000
"""It makes jobs by itself, as a time trigger does; but of those nobody needs one within the same minute."""


def _long_enough(every: Duration) -> Duration:
    # Not a bound of the field, which is fixed when the class is made: worlds that last a minute turn this limit too.
    if every < SHORTEST_AT_LEAST_EVERY_MS:
        raise refused(f"has to be at least {format_duration(SHORTEST_AT_LEAST_EVERY_MS)}")
    return every


AtLeastEveryField = Annotated[DurationField, AfterValidator(_long_enough)]


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

    def seek(self, after: Instant, identity: str, search: Search) -> Next:
        """Returns the first nominal instant strictly after `after`, or how far the search came.

        To go on, whoever was given a bound asks for what lies after the millisecond before it: it comes further each time,
        and to the very instant that a search without a bound finds.

        Args:
            after: The last scheduled nominal, never the present: a late look must not lose an occurrence.
            identity: The schedule's own id, for triggers that spread their load by a stable hash of it.
            search: How long it may take, with all others that it is used for.
        """
        since = after if self.start is None else max(after, self.start - 1)
        if search.is_used_up:
            return Next(since + 1, is_bound=True, since=since)
        found = self.next_after(after, identity, search)
        return Next(found, since=since) if search.cut_at is None else Next(search.cut_at, is_bound=True, since=since)

    def next_after(self, after: Instant, identity: str, search: Search | None = None) -> Instant | None:
        """Returns the first nominal instant strictly after `after`, inside of `start`..`end` and not excluded.

        Args:
            after: As of `seek`, which who keeps others waiting has to ask.
            identity: Likewise.
            search: How long it may take; by default as long as there are instants. One that `gave_up` found nothing yet.
        """
        search = search or Search()
        search.cut_at = None
        begin = floor = after if self.start is None else max(after, self.start - 1)
        latest = min(floor + search.ahead, LATEST_INSTANT)
        while True:
            # One step is always taken: pieces of a search have to come to its end.
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
        """Returns the first nominal of a schedule that counts from `activated` on; what lies before was never due."""
        return self.next_after(self.counts_from(activated) - 1, identity, search)

    def counts_from(self, activated: Instant) -> Instant:
        """Returns from which instant on a schedule counts that is activated then."""
        return activated

    def interval(self, nominal: Instant, identity: str, since: Instant | None = None) -> tuple[Instant, Instant]:
        """Returns the data interval [previous nominal, nominal).

        It is contiguous with the one before, and blind to `start`, so that the first occurrence covers as much as the
        others. Empty where there is no previous nominal.

        Args:
            nominal: One of its instants.
            identity: The schedule's own id.
            since: Where it is known that none lies between: what was searched forward need not be searched back.
        """
        previous = self.last_before(nominal if since is None else since + 1, identity)
        return (nominal if previous is None else previous, nominal)

    def last_before(self, before: Instant, identity: str, search: Search | None = None) -> Instant | None:
        """Returns the last instant strictly before `before` that is not excluded, without regard to `start` and `end`.

        Unlike `seek` in one piece, of 50,000 comparisons at most (0.1 s, 0.25 s of a union): one that leaves out decades by minutes. Who
        has others wait behind it and needs to know only what was since then gives the search a floor. The data interval of the
        first occurrence of a version needs all of it; that of each later one lies as close as the search forward came.
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
        """Returns the first instant strictly after `floor` inside of `start`..`end`, be it excluded or not."""
        following = self._following(floor if self.start is None else max(floor, self.start - 1), identity, search)
        return following if following is not None and self.is_within(following) else None

    def named_before(self, before: Instant, identity: str, search: Search) -> Instant | None:
        """Returns the last instant strictly before `before` inside of `start`..`end`, be it excluded or not."""
        preceding = self._preceding(before if self.end is None else min(before, self.end), identity, search)
        return preceding if preceding is not None and self.is_within(preceding) else None

    def names(self, instant: Instant, identity: str) -> bool:
        """Whether an instant is one of its own, inside of `start`..`end` and not excluded; nothing is searched for that."""
        is_named = self.would_name(instant, identity)
        return is_named and self.is_within(instant) and self.excluded_at(instant, identity) is None

    def would_name(self, instant: Instant, identity: str) -> bool:
        """Whether an instant is one of its own but for `start`, `end` and `exclude`."""
        return self._following(instant - 1, identity, Search()) == instant

    def fires_left(self, fires: int) -> int | None:
        """Returns how many occurrences are still to come after `fires`; None is without a bound."""
        return None if self.max_fires is None else max(0, self.max_fires - fires)

    def is_within(self, instant: Instant) -> bool:
        return (self.start is None or instant >= self.start) and (self.end is None or instant < self.end)

    def excluded_at(self, instant: Instant, identity: str = "", beside: tuple[Exclusion, ...] = ()) -> Span | None:
        """Returns the span around the instant that is left out, or None.

        One that stands for local times in a gap is left out only where all that it stands for are: it fires for the others.

        Args:
            instant: One that it names.
            identity: The schedule's own id.
            beside: Exclusions of what it is a part of, which are to hold as well.
        """
        exclusions = (*(self.exclude or ()), *beside)
        if not exclusions:
            return None
        # Years in one step: whoever leaves them out need not wait for them to be walked.
        return excluded_dates(exclusions, self.own_zone, instant) or excluded_span(exclusions, self.own_zone, instant)

    def kept(self, identity: str) -> Minutes:
        """Returns which minutes of a day of UTC may have an occurrence: what it may name and does not leave out."""

        def kept_on(day: int) -> int:
            out = 0 if self.exclude is None else minutes_left_out(self.exclude, self.own_zone, day)
            if out:
                out &= ~self.gap_ends_on(day)
            return 0 if out == ALL_MINUTES else self.minutes_of(day, identity) & ~out

        return kept_on

    def minutes_of(self, day: int, identity: str) -> int:
        """Returns the minutes of a day of UTC, counted from 1970-01-01, that it may name: bit n is minute n.

        All of them where nothing better is known: what is named must be among them, without regard to `start` and `end`.
        """
        return ALL_MINUTES

    def is_behind_gap(self, instant: Instant) -> bool:
        """Whether it may stand for local times that a clock change left out."""
        return False

    def gap_ends_on(self, day: int) -> int:
        """Returns the minutes of a day of UTC that have such an instant: what is left out there is not known by the minute."""
        return 0

    def skips(
        self, after: Instant, until: Instant, identity: str, beside: tuple[Exclusion, ...] = ()
    ) -> tuple[Skip, ...]:
        """Returns the local times that clock changes left out in `after < instant <= until` and that fire nowhere.

        Arguments as of `excluded_at`: a local time that is excluded is none of them.
        """
        return ()

    def note(self, instant: Instant, identity: str) -> str:
        """Returns what a clock change has to do with a nominal, in words for people; empty when nothing has."""
        clock = self.wall_clock(identity)
        return "" if clock is None else note_on(clock.times, clock.zone, instant, clock.policy)

    def reading(self) -> str:
        """Returns how the definition was read, where that surprises people; empty where it says it all itself."""
        return ""

    @property
    def comparisons(self) -> int:
        """With how much one instant is compared, and one day that is passed over."""
        return len(self.exclude or ())

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
    def _following(self, after: Instant, identity: str, search: Search) -> Instant | None:
        """Returns the first instant strictly after `after`, without regard to `start`, `end` and `exclude`."""

    @abstractmethod
    def _preceding(self, before: Instant, identity: str, search: Search) -> Instant | None:
        """Returns the last instant strictly before `before`, without regard to `start`, `end` and `exclude`."""


UNPAIRED = ""
"""In place of the value that evidence is paired by: it has none, whatever tells it apart from other evidence."""


class EventTrigger(Document, ABC):
    """A trigger that counts events: one latch per leaf, satisfied when nothing is missing.

    Attributes:
        correlate: What one AND state is kept for; None is one state for the schedule.
        at_least_every: A job is made at the latest this long after the last one, by hand or not.
        allow_empty: Also when nothing came.
    """

    if TYPE_CHECKING:
        # Only for the type checker: some kinds have these as fields, and pydantic lets no field hide an attribute.
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
        """Returns what counts events, in the order of `missing`'s counts."""

    @abstractmethod
    def missing(self, counts: Sequence[int]) -> str | None:
        """Returns why it has not fired, in words, or None when it is satisfied.

        Args:
            counts: What each leaf has counted in its unit, as many as `leaves` has.
        """

    @abstractmethod
    def is_satisfied_by(self, counts: Sequence[int]) -> bool:
        """Whether nothing is `missing`; without words, because each entry of a job's evidence asks it anew."""

    def shortfalls(self, counts: Sequence[int]) -> tuple[str, ...]:
        """Returns what each leaf has not counted, in words: what a job is told that did not wait for all of it."""
        pairs = zip(self.leaves(), counts, strict=True)
        return tuple(text for leaf, count in pairs if (text := leaf.shortfall(count)) is not None)

    @abstractmethod
    def ttls(self, together: Duration | None) -> tuple[Duration | None, ...]:
        """Returns how long each leaf's latch holds, None for ever.

        Args:
            together: What holds for leaves that say nothing, where others have to come as well; None outside of that.
        """

    @abstractmethod
    def terms(self, first_at: Instant) -> Terms:
        """Returns the deadlines of evidence whose first entry was appended at `first_at`."""

    @abstractmethod
    def group_of(self, leaf: int, event: Fact, at: Instant) -> str:
        """Returns the key of the evidence that an event belongs to; empty where the schedule has but one.

        Args:
            leaf: The place of the leaf that counts it.
            event: What happened.
            at: Its append time.
        """

    def group_of_tick(self, at: Instant) -> str:
        """Returns the key of the evidence that a tick of one of its time leaves belongs to."""
        return ""

    @property
    def opens_by_tick(self) -> bool:
        """Whether each tick opens evidence of its own (`driver: time`), instead of being a latch."""
        return False

    def paired_by(self, leaf: int, event: Fact) -> str | None:
        """Returns the value that the event is correlated by: `UNPAIRED` for none, None where the key of its evidence is it."""
        return self.leaves()[leaf].correlation_of(event) if self.correlate else UNPAIRED


class LeafTrigger(EventTrigger, ABC):
    """An event trigger that counts one thing.

    Attributes:
        ttl: How long what was counted holds, from the first of it. By default for ever where the leaf stands alone; inside
            of `all_of` and `at_least` as long as the time-out, 24 h where that ends nothing.
    """

    COUNT_FIELD: ClassVar[str] = "count"
    """The field that says how much is needed."""
    PAIRS: ClassVar[bool] = True
    """Whether one event can satisfy it, so that a value's one event can meet another's."""
    OF_TIME: ClassVar[bool] = False
    """Whether it is instants that it counts."""

    correlate: ClassVar[None] = None

    ttl: EndlessDurationField | None = None

    def outermost_fields(self) -> tuple[str, ...]:
        """Returns the fields that only a trigger by itself may have and that say something here."""
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
        # What opens evidence of its own, such as a run, is what people know it by.
        return None

    def own_group_of(self, event: Fact) -> str:
        """Returns the evidence of its own that one event opens for this leaf, where each fires by itself; else nothing."""
        return ""

    @property
    @abstractmethod
    def needed(self) -> int:
        """How much satisfies it, in the unit that it counts."""

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

    @property
    def hears_starts(self) -> bool:
        """Whether it counts starts of runs: those are told only where somebody listens."""
        return False

    def weight_of(self, event: Fact) -> int:
        """Returns how much an accepted event counts."""
        return 1

    def takes_back(self, event: Fact) -> bool:
        """Whether an accepted event says that its data partition is gone: what it counted as is not there any more."""
        return False

    def starts_anew(self, event: Fact) -> bool:
        """Whether an accepted event replaces all that its data partition counted as so far."""
        return False

    @abstractmethod
    def correlation_of(self, event: Fact) -> str:
        """Returns the key that the event is paired by; empty where the event has none."""

    @abstractmethod
    def shortfall(self, count: int) -> str | None:
        """Returns what is missing beside a count of `count`, or None."""
