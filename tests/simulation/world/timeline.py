"""Virtual time: one heap of what is to happen, one seeded source of chance. Nothing in the simulation knows another clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from math import log
from random import Random
from typing import TypeAlias

START = 1_763_000_000_000
"""2025-11-13T02:13:20Z: an instant without any zone's clock change near it."""

Action: TypeAlias = Callable[[], None]
DELAYS_MAX = 40
"""How many times its mean a delay is at most."""


class Timeline:
    """What happens when. Ties happen in the order in which they were planned.

    Attributes:
        now: True time, milliseconds since the epoch; brokers keep it, nodes deviate from it.
        chance: The one source of randomness.
    """

    def __init__(self, seed: int) -> None:
        self.now = START
        self.chance = Random(seed)
        self._heap: list[tuple[int, int, Action]] = []
        self._planned = 0

    def after(self, milliseconds: float, action: Action) -> None:
        """Plans an action; at least 1 ms from now for a positive delay."""
        delay = int(milliseconds)
        if delay <= 0:
            delay = 1 if milliseconds > 0 else 0
        self._planned += 1
        heappush(self._heap, (self.now + delay, self._planned, action))

    def run(self, until: int) -> None:
        """Lets happen what is planned up to and including the instant."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, action = heappop(heap)
            action()
        self.now = until

    # -- chance -------------------------------------------------------------------------------------------------------

    def happens(self, probability: float) -> bool:
        return probability > 0 and self.chance.random() < probability

    def between(self, low: float, high: float) -> float:
        return self.chance.uniform(low, high)

    def around(self, mean: float) -> float:
        """An exponential delay with this mean, at most `DELAYS_MAX` times it, at least a tenth of a millisecond."""
        # `Random.expovariate` written out: each delay of a world is drawn here.
        delay = -log(1.0 - self.chance.random()) / (1 / mean)
        return 0.1 if delay < 0.1 else min(delay, DELAYS_MAX * mean)


class Process:
    """Something that runs, may be frozen, and may die: what is planned in it waits, or never happens, with it."""

    def __init__(self, timeline: Timeline, name: str) -> None:
        self.timeline = timeline
        self.name = name
        self.alive = True
        self.paused = False
        self._mail: deque[Action] = deque()

    def post(self, action: Action) -> None:
        """Does it now; when the process is frozen as soon as it goes on, when it is dead never."""
        if not self.alive:
            return
        if self.paused:
            self._mail.append(action)
        else:
            action()

    def after(self, milliseconds: float, action: Action) -> None:
        self.timeline.after(milliseconds, lambda: self.post(action))

    def pause(self) -> None:
        self.paused = True

    def go_on(self) -> None:
        """Everything that came meanwhile happens now, in its order: old timers, old answers."""
        self.paused = False
        while self._mail and self.alive and not self.paused:
            self._mail.popleft()()

    def die(self) -> None:
        self.alive = False
        self._mail.clear()
