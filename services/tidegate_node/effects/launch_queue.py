"""Queue in front of a node's launcher: of the waiting launches, the oldest of the highest class is next.

Used by `launch_effects.py` on the event loop. It orders launches of one node only, and interrupts none.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count

from tidegate_core.language.definitions.run_policies import Priority, rank_of


class LaunchLine:
    """Semaphore that serves waiters by class, and within a class in order of arrival.

    Args:
        places: Concurrent launches.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()

    async def take(self, priority: Priority) -> None:
        """Returns once the caller has a place. The caller must give it back."""
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (rank_of(priority), next(self._numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.give_back()  # The place was granted at the moment of the cancellation.
            raise

    def give_back(self) -> None:
        """Frees a place, or passes it to the first waiter."""
        while self._waiting:
            *_, turn = heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
