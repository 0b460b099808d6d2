"""The line before a node's launcher: of the launches that wait, one of the highest class goes next.

Used by `launch_effects.py` on the event loop. It promises an order among launches of one node only, and none that are under
way give their place up.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count

from tidegate_core.language.definitions.priority import Priority, rank_of


class LaunchLine:
    """A semaphore that serves waiters by class, and within a class in the order in which they came.

    Args:
        places: Launches that may be under way at a time.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()

    async def take(self, priority: Priority) -> None:
        """Returns once the caller has a place; whoever has one gives it back."""
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (rank_of(priority), next(self._numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.give_back()  # The place came together with the cancellation.
            raise

    def give_back(self) -> None:
        """Frees a place: the first of the line has it, if somebody waits."""
        while self._waiting:
            *_, turn = heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
