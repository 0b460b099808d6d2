"""Orders from the asyncio loop to a consumer's thread: the state wanted per topic partition, not a queue of steps.

Bounded by the number of topic partitions however long the thread is stuck: the last word on each wins, credits add up.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TypeAlias

from tidegate_ports.bus import Topic

Where: TypeAlias = tuple[str, int]
"""Topic and topic partition."""


@dataclass(slots=True)
class Order:
    """What changed for one topic partition since the thread last looked.

    Attributes:
        era: Era of the loop; credits belong to it.
        seek: New position, which began this era; None = as before.
        stop: No position any more; a later seek undoes it.
        leave: Stop and forget it; a later seek undoes it.
        taken: Records given back.
        hint: Next offset for lag tools.
    """

    era: int
    topic: Topic | None = None
    seek: int | None = None
    stop: bool = False
    leave: bool = False
    taken: int = 0
    hint: int | None = None


class ConsumerCommands:
    """The loop writes, the thread collects; one lock, held for some assignments only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[Where, Order] = {}
        self._eras: dict[Where, int] = {}
        self._last_era = 0

    def seek(self, where: Where, offset: int, topic: Topic | None = None) -> None:
        with self._lock:
            self._last_era += 1
            self._eras[where] = self._last_era
            order = self._order(where)
            # A new position ends whatever was wanted of the old one.
            order.era, order.seek, order.topic = self._last_era, offset, topic
            order.stop, order.leave, order.taken = False, False, 0

    def stop(self, where: Where) -> None:
        """Nothing of it flows until the next seek, and records on their way are dropped: they are of no position any more."""
        with self._lock:
            self._eras.pop(where, None)
            order = self._order(where)
            order.era, order.seek, order.stop, order.taken = 0, None, True, 0

    def taken(self, where: Where, count: int) -> None:
        with self._lock:
            self._order(where).taken += count

    def hint(self, where: Where, offset: int) -> None:
        with self._lock:
            self._order(where).hint = offset

    def leave(self, where: Where) -> None:
        with self._lock:
            self._eras.pop(where, None)
            self._pending[where] = Order(era=0, leave=True)

    def forget(self, where: Where) -> None:
        """It is not ours any more: orders that the thread has not seen are void, and records on their way are dropped."""
        with self._lock:
            self._eras.pop(where, None)
            self._pending.pop(where, None)

    def era(self, where: Where) -> int:
        """The era whose records are welcome; 0 = none."""
        return self._eras.get(where, 0)

    def collect(self) -> dict[Where, Order]:
        """Takes the changes; called by the thread before each poll, and almost always empty."""
        if not self._pending:
            return {}
        with self._lock:
            pending, self._pending = self._pending, {}
        return pending

    def _order(self, where: Where) -> Order:
        order = self._pending.get(where)
        if order is None:
            order = self._pending[where] = Order(era=self._eras.get(where, 0))
        return order
