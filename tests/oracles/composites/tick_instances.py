"""`driver: time` (SEMANTICS 6.5, 6.6): each instant of a clock has a state of its own, and each event belongs to one of them.

Events come in order, so an instance that is there was open before them; what ends at an instant ends before what comes at it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from tests.oracles.composites.composites import Clock, Leaf, OnTimeout, Some, leaves_of
from tests.oracles.composites.pairing import Fired


@dataclass(slots=True)
class Waiting:
    """What an instance has, or what no instance lacks (`tick` is None then)."""

    tree: Some
    tick: int | None = None

    def leaf(self, dataset: str) -> Leaf:
        return next(leaf for leaf in leaves_of(self.tree) if leaf.dataset == dataset)

    @property
    def manifest(self) -> tuple[tuple[str, str], ...]:
        return tuple(sorted((leaf.dataset, name) for leaf in leaves_of(self.tree) for name in leaf.held))


@dataclass(slots=True)
class Instances:
    """A composite one of whose children is the clock that opens instances.

    Attributes:
        tree: All of its children are needed; one of them is a clock, none of the others has one.
        most: Instances that may be open.
        skipped: Ticks that found so many.
    """

    tree: Some
    timeout: int
    on_timeout: OnTimeout
    most: int
    now: int
    fired: list[Fired] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    _open: list[Waiting] = field(default_factory=list)
    _early: Waiting = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """An update: what was counted is discarded, and so are the instances."""
        self._open, self._early = [], Waiting(deepcopy(self.tree))

    def event(self, dataset: str, data_partition: str, at: int) -> None:
        self.pass_time(at)
        places = [*self._open, self._early]
        lacking = [each for each in self._open if not each.leaf(dataset).is_satisfied]
        of_before = [each for each in places if data_partition in each.leaf(dataset).held]
        place = next(iter([*of_before, *lacking, self._early]))
        place.leaf(dataset).held.setdefault(data_partition, at)
        self._fire_if_complete(place)

    def pass_time(self, until: int) -> None:
        (clock,) = [leaf for leaf in leaves_of(self.tree) if isinstance(leaf, Clock)]
        while (tick := clock.next_after(self.now)) <= until:
            self._pass_deadlines(tick)
            self.now = tick
            if len(self._open) >= self.most:
                self.skipped.append(tick)
                continue
            opened, self._early = self._early, Waiting(deepcopy(self.tree))
            opened.tick = tick
            opened.leaf(clock.dataset).held[str(tick)] = tick
            self._open.append(opened)
            self._fire_if_complete(opened)
        self._pass_deadlines(until)

    def _fire_if_complete(self, place: Waiting) -> None:
        if place.tick is not None and place.tree.is_satisfied:
            self._open.remove(place)
            self.fired.append(Fired(place.manifest, partly=False))

    def _pass_deadlines(self, until: int) -> None:
        """An instance ends as one; what waits for a tick ends leaf by leaf."""
        for instance in list(self._open):
            assert instance.tick is not None
            if self.on_timeout == "wait" or instance.tick + self.timeout > until:
                continue
            self._open.remove(instance)
            if self.on_timeout == "partial":
                self.fired.append(Fired(instance.manifest, partly=True))
            else:
                self.expired.append("trigger_timeout")
        early = [leaf for leaf in leaves_of(self._early.tree) if leaf.held]
        for leaf in early:
            ttl = leaf.ttl or (None if self.on_timeout == "wait" else self.timeout)
            if ttl is not None and leaf.first is not None and leaf.first + ttl <= until:
                leaf.held.clear()
        if early and not any(leaf.held for leaf in early):
            self.expired.append("evidence_expired")
