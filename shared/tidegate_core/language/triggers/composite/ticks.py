"""Time leaves of composites, and the order of their ticks.

Each instant of a time leaf is a tick, which latches the leaf as an event would, without a producer. A latch holds for its
`ttl`, and the job that it helps to create consumes it; further ticks before that change nothing. The ticks follow from the
definition and a cursor, so every caller gets the same ones at any time.
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
        max_fires: Number of ticks of one version of the schedule; then the leaf latches no more.
        flexible: Not allowed here; only a trigger outside of composites may have it.
        driver: Effect of a tick. `data`: it sets a latch like an event. `time`: each tick opens separate evidence, which
            waits for the other triggers of the `all_of`.
        ttl: Time for which a tick holds. The default in `all_of` and `at_least` is the time-out, or 24 h if the time-out does
            not end the wait; in `any_of` for ever.
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
            raise refused("is for a trigger outside of composites only", field="flexible", hint=hint)
        if self.driver == "time" and self.ttl is not None:
            hint = "take it out: the evidence of a tick ends with the timeout of the all_of"
            raise refused("has no effect with driver: time, which sets no latch", field="ttl", hint=hint)
        return self

    @property
    def opens_by_tick(self) -> bool:
        return self.driver == "time"

    @property
    @abstractmethod
    def words(self) -> str:
        """Short description of the leaf, for users."""

    @property
    def needed(self) -> int:
        return 1

    def terms(self, first_at: Instant) -> Terms:
        return Terms(ttls=self.ttls(None))

    def event_key(self, namespace: str) -> str:
        return ""  # No event announces a tick.

    def accepts(self, event: Fact, namespace: str) -> str | None:
        return None

    def correlation_of(self, event: Fact) -> str:
        return ""

    def shortfall(self, count: int) -> str | None:
        return None if count else f"an instant of {self.words}"


class CronLeaf(TickLeaf, CronTrigger):
    """A tick comes at each time of `expression` on the wall clock of `zone`."""

    EXAMPLE: ClassVar = {"type": "cron", "expression": "0 8 * * *", "zone": "Europe/Rome"}

    @model_validator(mode="after")
    def _no_macro_of_a_period(self) -> Self:
        if self.is_every_macro:
            hint = "write {type: every, period: ...}"
            raise refused("is a period, which needs type every inside a composite", field="expression", hint=hint)
        return self

    @property
    def words(self) -> str:
        return f"cron {self.expression} {self.zone}"


class EveryLeaf(TickLeaf, EveryTrigger):
    """A tick comes at each multiple of a period."""

    EXAMPLE: ClassVar = {"type": "every", "period": "4h", "ttl": "2h"}

    @property
    def words(self) -> str:
        if isinstance(self.period, CalendarPeriod):
            return f"every {self.period.count} {self.period.unit} {self.own_zone}"
        return f"every {format_duration(self.period)}"


class AtLeaf(TickLeaf, AtTrigger):
    """A single tick comes at `instant`."""

    EXAMPLE: ClassVar = {"type": "at", "instant": "2026-12-24T18:00:00Z", "ttl": "none"}

    @property
    def words(self) -> str:
        return f"at {format_instant(self.instant)}"


class TimesLeaf(TickLeaf, TimesTrigger):
    """A tick comes at each instant of its specs."""

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
"""Ticks of one decision. A tick of a cron expression costs about 20 µs, and the shard writer has other work. Only an outage
accumulates so many ticks."""


class Tick(NamedTuple):
    """An instant, and the index of the leaf that it latches."""

    at: Instant
    leaf: int


class Walk(NamedTuple):
    """Result of a walk over ticks.

    Attributes:
        ticks: Ticks in order; for each instant all ticks or none.
        following: Next tick, due or not, or the bound of the search. If it is due, the caller walks again from there.
        counted: Number of ticks of each time leaf, including earlier walks, for `max_fires`.
    """

    ticks: list[Tick]
    following: Next
    counted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ticks:
    """The ticks of a trigger's time leaves.

    Attributes:
        leaves: Time leaves with their index.
        identity: Id of the schedule.
        counted: Number of past ticks of each leaf; empty if there were none.
    """

    leaves: tuple[tuple[int, TickLeaf], ...]
    identity: str
    counted: tuple[int, ...] = ()

    def first_from(self, instant: Instant) -> Next:
        """Returns the first tick of any leaf at or after an instant, or the bound of the search."""
        return self.walk(instant, instant - 1).following

    def walk(self, first: Instant, through: Instant) -> Walk:
        """Returns the ticks `first <= at <= through`, about 500 at most."""
        counted = list(self.counted or [0] * len(self.leaves))
        # Each leaf has its own steps. All leaves share one cursor, so it would stop if any leaf got no further.
        searches = [Search.of_a_decision(len(self.leaves)) for _ in self.leaves]
        heads = [self._next(number, first - 1, counted, searches) for number in range(len(self.leaves))]
        found: list[Tick] = []
        while True:
            # At the same instant a bound precedes ticks: it may hide a tick there, and an instant is taken whole or not at all.
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
    """Returns the ticks of a trigger; without time leaves it has none.

    Args:
        trigger: Any event trigger.
        identity: Id of the schedule.
        counted: Number of past ticks of each time leaf in this version; empty if there were none.
    """
    leaves = [(place, leaf) for place, leaf in enumerate(trigger.leaves()) if isinstance(leaf, TickLeaf)]
    return Ticks(tuple(leaves), identity, counted)
