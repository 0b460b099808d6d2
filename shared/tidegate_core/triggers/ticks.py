"""The ticks of a composite: which instants latch which of its leaves, in their order (SEMANTICS 6.5).

Pure, as all that a time trigger says: what a tick latches follows from the definition and a cursor, whoever asks and whenever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidegate_core.model.instants import Instant
from tidegate_core.triggers.base import EventTrigger
from tidegate_core.triggers.tick_leaf import TickLeaf

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
        following: The next one, due or not; None when there is no more.
        counted: Ticks of each time leaf, those of before included, for `max_fires`.
    """

    ticks: list[Tick]
    following: Instant | None
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

    def first_from(self, instant: Instant) -> Instant | None:
        """Returns the first tick at an instant or after it, of whichever leaf."""
        return self.walk(instant, instant - 1).following

    def walk(self, first: Instant, through: Instant) -> Walk:
        """Walks the ticks `first <= at <= through`, about 500 of them at most."""
        counted = list(self.counted or [0] * len(self.leaves))
        heads = [self._next(number, first - 1, counted) for number in range(len(self.leaves))]
        found: list[Tick] = []
        while True:
            following = min((head for head in heads if head is not None), default=None)
            if following is None or following > through or len(found) >= TICKS_TAKEN_MAX:
                return Walk(found, following, tuple(counted))
            for number, head in enumerate(heads):
                if head == following:
                    found.append(Tick(following, self.leaves[number][0]))
                    counted[number] += 1
                    heads[number] = self._next(number, following, counted)

    def _next(self, number: int, after: Instant, counted: Sequence[int]) -> Instant | None:
        leaf = self.leaves[number][1]
        return None if leaf.fires_left(counted[number]) == 0 else leaf.next_after(after, self.identity)


def ticks_of(trigger: EventTrigger, identity: str, counted: tuple[int, ...] = ()) -> Ticks:
    """Returns the ticks of a trigger; none come where none of its leaves is of time.

    Args:
        trigger: Any that counts events.
        identity: The schedule's own id.
        counted: How many of each time leaf have been in this version; empty: none.
    """
    leaves = [(place, leaf) for place, leaf in enumerate(trigger.leaves()) if isinstance(leaf, TickLeaf)]
    return Ticks(tuple(leaves), identity, counted)
