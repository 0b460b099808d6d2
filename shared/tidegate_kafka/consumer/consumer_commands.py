"""Commands from the asyncio loop to a consumer's thread: the wanted state of each topic partition, not a queue of
steps.

Memory is bounded by the number of topic partitions, however long the thread is stuck. A newer command replaces the
older one of its topic partition, and credits add up.
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
    """Changes to one topic partition since the thread last collected them.

    Attributes:
        era: Era that the loop works in; credits belong to it.
        topic: Topic that a seek names; None = as before.
        seek: New position, which began this era; None = as before.
        stop: Whether reading stops and the position is dropped; a later seek undoes it.
        leave: Whether reading stops and the topic partition is forgotten; a later seek undoes it.
        taken: Records that the receiver has finished.
        hint: Next offset, shown to lag tools.
    """

    era: int
    topic: Topic | None = None
    seek: int | None = None
    stop: bool = False
    leave: bool = False
    taken: int = 0
    hint: int | None = None


class ConsumerCommands:
    """Commands that the loop writes and the thread collects. One lock, held for some assignments only."""

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
            # A new position voids all earlier commands of this topic partition.
            order.era, order.seek, order.topic = self._last_era, offset, topic
            order.stop, order.leave, order.taken = False, False, 0

    def stop(self, where: Where) -> None:
        """Stops reading until the next seek. Records already on their way are dropped, because their position is
        gone.
        """
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
        """Voids commands that the thread has not collected, and drops records on their way: the assignment is lost."""
        with self._lock:
            self._eras.pop(where, None)
            self._pending.pop(where, None)

    def era(self, where: Where) -> int:
        """Returns the era whose records are accepted; 0 = none."""
        return self._eras.get(where, 0)

    def collect(self) -> dict[Where, Order]:
        """Takes the changes. The thread calls it before each poll; it is almost always empty."""
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
