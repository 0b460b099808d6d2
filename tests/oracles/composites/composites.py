"""Composites as SEMANTICS 6 says them, with neither rows nor rewinds: events come in order, and each deadline when it comes.

It holds for one state of one schedule whose jobs are sealed as soon as they are satisfied; `pairing.py` has several.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias


@dataclass(slots=True)
class Leaf:
    """Counts distinct data partitions of one dataset; what it holds is gone `ttl` ms after the first of it."""

    dataset: str
    count: int
    ttl: int | None = None
    held: dict[str, int] = field(default_factory=dict)

    @property
    def first(self) -> int | None:
        return min(self.held.values(), default=None)

    @property
    def is_satisfied(self) -> bool:
        return len(self.held) >= self.count


@dataclass(slots=True)
class Clock(Leaf):
    """Is latched by each instant that is `phase` ms after a multiple of `period` ms, unless it is latched already."""

    count: int = 1
    period: int = 0
    phase: int = 0

    def next_after(self, instant: int) -> int:
        return instant + self.period - (instant - self.phase) % self.period


@dataclass(slots=True)
class Some:
    """So many of its children: all of them, one of them, or k."""

    needed: int
    children: list[Tree]

    @property
    def is_satisfied(self) -> bool:
        return sum(child.is_satisfied for child in self.children) >= self.needed


Tree: TypeAlias = Leaf | Some
OnTimeout: TypeAlias = Literal["abort", "partial", "wait"]
Manifest: TypeAlias = tuple[tuple[str, str], ...]


def leaves_of(tree: Tree) -> list[Leaf]:
    return [tree] if isinstance(tree, Leaf) else [leaf for child in tree.children for leaf in leaves_of(child)]


class Automaton:
    """What becomes of events, one after the other.

    Attributes:
        fired: What each job was made of, and whether something was missing.
        expired: Reason of each piece of evidence that became no job.

    `ends_at` is the end of its day: whatever is there then is a time-out, also where each latch has its own end alone.
    """

    def __init__(
        self, tree: Tree, timeout: int | None, on_timeout: OnTimeout, ends_at: int | None = None, now: int = 0
    ) -> None:
        self.fired: list[tuple[Manifest, bool]] = []
        self.expired: list[str] = []
        self._tree = tree
        self._leaves = leaves_of(tree)
        self._timeout = None if on_timeout == "wait" else timeout
        self._fires_partly = on_timeout == "partial"
        self._ticked = now
        self._ends_at = ends_at

    def event(self, dataset: str, data_partition: str, at: int) -> None:
        self.pass_time(at)
        for leaf in self._leaves:
            if leaf.dataset == dataset:
                leaf.held.setdefault(data_partition, at)
        if self._tree.is_satisfied:
            self._fire(partly=False)

    def restart(self) -> None:
        """An update: what was counted is discarded."""
        for leaf in self._leaves:
            leaf.held.clear()

    def pass_time(self, until: int) -> None:
        """Lets each tick and each deadline come that is due by then; of one instant the deadlines first."""
        clocks = [leaf for leaf in self._leaves if isinstance(leaf, Clock)]
        while (tick := min((clock.next_after(self._ticked) for clock in clocks), default=until + 1)) <= until:
            self._pass_deadlines(tick)
            for clock in clocks:
                if clock.next_after(self._ticked) == tick and not clock.held:
                    clock.held[str(tick)] = tick
            self._ticked = tick
            if self._tree.is_satisfied:
                self._fire(partly=False)
        self._pass_deadlines(until)

    def _pass_deadlines(self, until: int) -> None:
        while (due := self._next()) is not None and due[0] <= until:
            at, leaf = due
            if leaf is not None:
                leaf.held.clear()
                if not any(each.held for each in self._leaves):
                    self.expired.append("evidence_expired")
            elif self._fires_partly:
                self._fire(partly=True)
            else:
                self.restart()
                self.expired.append("trigger_timeout")
            assert at <= until

    def _next(self) -> tuple[int, Leaf | None] | None:
        """The time-out of all, or the end of its day, before what at the same instant ends one latch only."""
        firsts = [leaf.first for leaf in self._leaves if leaf.first is not None]
        if not firsts:
            return None
        ends = [
            (leaf.first + leaf.ttl, leaf) for leaf in self._leaves if leaf.first is not None and leaf.ttl is not None
        ]
        latch = min(ends, key=lambda end: end[0], default=None)
        waits = [] if self._timeout is None else [min(firsts) + self._timeout]
        over = min([*waits, *([] if self._ends_at is None else [self._ends_at])], default=None)
        return (over, None) if over is not None and (latch is None or over <= latch[0]) else latch

    def _fire(self, *, partly: bool) -> None:
        held = ((leaf.dataset, name) for leaf in self._leaves for name in leaf.held)
        self.fired.append((tuple(sorted(held)), partly))
        self.restart()
