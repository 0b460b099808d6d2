"""A time trigger among others: each of its instants is a tick, which latches it as an event would (SEMANTICS 6.5).

A tick is an event that nobody has to send. It holds for its `ttl` and is consumed by the job that it helps to make; further
ones before that change nothing.


The ticks of a composite: which instants latch which of its leaves, in their order (SEMANTICS 6.5).

Pure, as all that a time trigger says: what a tick latches follows from the definition and a cursor, whoever asks and whenever.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Self

from pydantic import model_validator

from tidegate_core.language.events.trigger_facts import Fact
from tidegate_core.language.time.calendar_periods import CalendarPeriod
from tidegate_core.language.triggers.latches import Terms
from tidegate_core.language.triggers.on_time.at import AtTrigger
from tidegate_core.language.triggers.on_time.cron import CronTrigger
from tidegate_core.language.triggers.on_time.every import EveryTrigger
from tidegate_core.language.triggers.on_time.times import TimesTrigger
from tidegate_core.language.triggers.search import NEVER, Next, Search
from tidegate_core.language.triggers.trigger import EventTrigger, LeafTrigger, Take, TimeTrigger
from tidegate_core.language.values.durations import format_duration
from tidegate_core.language.values.instants import LATEST_INSTANT, Instant, format_instant
from tidegate_core.language.values.problems import refused


class TickLeaf(LeafTrigger, TimeTrigger, ABC):
    """A leaf that an instant latches.

    Attributes:
        max_fires: Its ticks in one version of the schedule; then it latches no more.
        flexible: Of a trigger that makes jobs by itself.
        driver: `data`: a tick is a latch among the others. `time`: each tick opens an instance of its own, which waits for what
            else stands in the `all_of`.
        ttl: How long a tick holds: inside of `all_of` and `at_least` as long as the time-out, 24 h where that ends nothing; in
            `any_of` for ever.
    """

    LATER_FIELDS: ClassVar = frozenset({"driver"})
    PAIRS: ClassVar[bool] = False
    OF_TIME: ClassVar[bool] = True

    driver: Literal["data", "time"] = "data"

    take: ClassVar[Take] = "all"
    at_least_every: ClassVar[None] = None
    allow_empty: ClassVar[bool] = False

    @model_validator(mode="after")
    def _only_latches(self) -> Self:
        if self.flexible is not None:
            hint = "take it out; jobs are delayed by a constraint"
            raise refused("is of a trigger that makes jobs by itself", field="flexible", hint=hint)
        if self.driver == "time" and self.ttl is not None:
            hint = "an instance ends with the timeout of the all_of"
            raise refused("is of a latch, and with driver: time it is none", field="ttl", hint=hint)
        return self

    @property
    def opens_by_tick(self) -> bool:
        return self.driver == "time"

    @property
    @abstractmethod
    def words(self) -> str:
        """What it is, in a few words."""

    @property
    def needed(self) -> int:
        return 1

    def terms(self, first_at: Instant) -> Terms:
        return Terms(ttls=self.ttls(None))

    def event_key(self, namespace: str) -> str:
        return ""  # Nobody announces it.

    def accepts(self, event: Fact, namespace: str) -> str | None:
        return None

    def correlation_of(self, event: Fact) -> str:
        return ""

    def shortfall(self, count: int) -> str | None:
        return None if count else f"an instant of {self.words}"


class CronLeaf(TickLeaf, CronTrigger):
    """Is latched at the times of `expression` on the wall clock of `zone`."""

    EXAMPLE: ClassVar = {"type": "cron", "expression": "0 8 * * *", "zone": "Europe/Rome"}

    @model_validator(mode="after")
    def _no_macro_of_a_period(self) -> Self:
        if self.is_every_macro:
            hint = "write {type: every, period: ...}"
            raise refused("is a period, and no expression among other triggers", field="expression", hint=hint)
        return self

    @property
    def words(self) -> str:
        return f"cron {self.expression} {self.zone}"


class EveryLeaf(TickLeaf, EveryTrigger):
    """Is latched at each multiple of a period."""

    EXAMPLE: ClassVar = {"type": "every", "period": "4h", "ttl": "2h"}

    @property
    def words(self) -> str:
        if isinstance(self.period, CalendarPeriod):
            return f"every {self.period.count} {self.period.unit} {self.own_zone}"
        return f"every {format_duration(self.period)}"


class AtLeaf(TickLeaf, AtTrigger):
    """Is latched once, at `instant`."""

    EXAMPLE: ClassVar = {"type": "at", "instant": "2026-12-24T18:00:00Z", "ttl": "none"}

    @property
    def words(self) -> str:
        return f"at {format_instant(self.instant)}"


class TimesLeaf(TickLeaf, TimesTrigger):
    """Is latched at each instant of its specs."""

    EXAMPLE: ClassVar = {
        "type": "times",
        "specs": [
            {"type": "cron", "expression": "0 6 * * mon-fri", "zone": "Europe/Rome"},
            {"type": "cron", "expression": "0 9 * * sat,sun", "zone": "Europe/Rome"},
        ],
    }

    @property
    def words(self) -> str:
        return f"times of {len(self.specs)} specs"


TICKS_TAKEN_MAX = 500
"""In one decision: a cron expression costs some 20 µs each, and the lane has others to serve. So many pass only in an outage."""


class Tick(NamedTuple):
    """An instant, and the place of the leaf that it latches."""

    at: Instant
    leaf: int


class Walk(NamedTuple):
    """How far a walk came.

    Attributes:
        ticks: In their order; of each instant all or none.
        following: The next one, due or not, or how far it was searched: for one that is due another walk is to begin there.
        counted: Ticks of each time leaf, those of before included, for `max_fires`.
    """

    ticks: list[Tick]
    following: Next
    counted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ticks:
    """The instants of a trigger's time leaves.

    Attributes:
        leaves: With their places.
        identity: The schedule's own id.
        counted: How many of each have been; empty: none.
    """

    leaves: tuple[tuple[int, TickLeaf], ...]
    identity: str
    counted: tuple[int, ...] = ()

    def first_from(self, instant: Instant) -> Next:
        """Returns the first tick at an instant or after it, of whichever leaf, or how far it was searched."""
        return self.walk(instant, instant - 1).following

    def walk(self, first: Instant, through: Instant) -> Walk:
        """Walks the ticks `first <= at <= through`, about 500 of them at most."""
        counted = list(self.counted or [0] * len(self.leaves))
        # Each leaf has steps of its own: all of them come further, else the cursor, which is one, would not.
        searches = [Search.of_a_decision(len(self.leaves)) for _ in self.leaves]
        heads = [self._next(number, first - 1, counted, searches) for number in range(len(self.leaves))]
        found: list[Tick] = []
        while True:
            # At one instant a bound comes first: with what may lie there, all or none of an instant are taken.
            following = min(heads, key=_order, default=NEVER)
            at = following.found
            if at is None or at > through or len(found) >= TICKS_TAKEN_MAX:
                return Walk(found, following, tuple(counted))
            for number, head in enumerate(heads):
                if head.at == at:
                    found.append(Tick(at, self.leaves[number][0]))
                    counted[number] += 1
                    heads[number] = self._next(number, at, counted, searches)

    def _next(self, number: int, after: Instant, counted: Sequence[int], searches: Sequence[Search]) -> Next:
        leaf = self.leaves[number][1]
        if leaf.fires_left(counted[number]) == 0:
            return NEVER
        return leaf.seek(after, self.identity, searches[number])


def _order(head: Next) -> tuple[Instant, bool]:
    return (LATEST_INSTANT + 1 if head.at is None else head.at, not head.is_bound)


def ticks_of(trigger: EventTrigger, identity: str, counted: tuple[int, ...] = ()) -> Ticks:
    """Returns the ticks of a trigger; none come where none of its leaves is of time.

    Args:
        trigger: Any that counts events.
        identity: The schedule's own id.
        counted: How many of each time leaf have been in this version; empty: none.
    """
    leaves = [(place, leaf) for place, leaf in enumerate(trigger.leaves()) if isinstance(leaf, TickLeaf)]
    return Ticks(tuple(leaves), identity, counted)
