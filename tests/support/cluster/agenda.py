"""What a load does later: acts with their moments, done in their order by whoever looks. Thread-safe."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(order=True)
class _Act:
    at: float
    number: int
    act: Callable[[], None] = field(compare=False)


class Agenda:
    """Acts to come. Nothing is done by itself."""

    def __init__(self) -> None:
        self._acts: list[_Act] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Notes an act for that many seconds from now."""
        with self._lock:
            heapq.heappush(self._acts, _Act(time.monotonic() + seconds, next(self._numbers), act))

    def do_due(self) -> None:
        """Does what is due by now."""
        while act := self._next(time.monotonic()):
            act()

    def do_all(self) -> None:
        """Does what is left, whenever it is due."""
        while act := self._next(float("inf")):
            act()

    def _next(self, by: float) -> Callable[[], None] | None:
        with self._lock:
            return heapq.heappop(self._acts).act if self._acts and self._acts[0].at <= by else None
