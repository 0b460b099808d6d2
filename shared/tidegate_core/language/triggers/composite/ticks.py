"""The ticks of a composite: which instants latch which of its leaves, in their order (SEMANTICS 6.5).

Pure, as all that a time trigger says: what a tick latches follows from the definition and a cursor, whoever asks and whenever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidegate_core.language.triggers.composite.tick_leaf import TickLeaf
from tidegate_core.language.triggers.search import NEVER, Next, Search
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.instants import LATEST_INSTANT, Instant

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
