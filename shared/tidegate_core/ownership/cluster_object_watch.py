"""Reads a cluster object and notifies a listener (`commands/cluster_object.py`); a partition actor has one per object that it follows.

The item is read after the shards are fenced, at each wake-up, and every few seconds. A lost wake-up therefore costs latency only.
Writes nothing. Does not promise a listener each version: versions in quick succession reach it as one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from tidegate_core.commands.cluster_object import ClusterObjectKind, V
from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.rows.effects import Items, Read
from tidegate_core.writes.fencing import whole

CHECK_MS = 5_000
"""Interval between reads, without jitter; a change whose wake-up was lost is seen that much later."""


class ClusterObjectWatch(Generic[V]):
    """The present value of one cluster object, as far as this partition actor has read it. One per life of the actor.

    Args:
        host: Shared parts of the partition actor.
        kind: Kind of the object.
        listener: Called with the value and the instant at which its read began, after each read, changed or not.
        fixed_rate: Whether the interval counts from the last alarm, for a listener that takes seconds; otherwise from the end of a read.

    Attributes:
        known: The value as last read; its version never decreases.
        read_at: Instant at which the last read began; a later change is not in `known`.
    """

    def __init__(
        self,
        host: ActorContext,
        kind: ClusterObjectKind[V],
        listener: Callable[[V, int], Operation[None]],
        *,
        fixed_rate: bool = False,
    ) -> None:
        self.known = kind.empty
        self.read_at = 0
        self._host = host
        self._kind = kind
        self._listener = listener
        self._fixed_rate = fixed_rate
        self._woken = Signal(kind.name)
        self._armed = False
        self._closed = False

    def check(self) -> None:
        """Has the item read soon."""
        self._host.operations.raise_(self._woken)

    def close(self) -> None:
        """Reads nothing more; a listener that is at work goes on."""
        self._closed = True

    def read(self) -> Operation[None]:
        """Reads the item."""
        began = self._host.now
        found = yield from self._host.read_for_good(Read((self._kind.key,)))
        assert isinstance(found, Items)
        item = found.found.get(self._kind.key)
        if item is not None and whole(item, "version") > self.known.version:
            self.known = self._kind.decode(item)
        self.read_at = began

    def serve(self) -> Operation[None]:
        """Reads the item, and calls the listener, until it is closed."""
        if self._fixed_rate:
            self._ring_at(self._host.now + CHECK_MS)
        while not self._closed:
            yield from self.read()
            yield from self._listener(self.known, self.read_at)
            if not self._armed:  # One alarm only: wake-ups must not add more.
                self._arm()
            yield self._woken

    def _arm(self) -> None:
        self._ring_at(self._host.now + CHECK_MS + self._host.jitter(self._kind.name, CHECK_MS // 10))

    def _ring_at(self, at: int) -> None:
        self._armed = True
        self._host.call_at(at, self._ring, routine=True)

    def _ring(self) -> None:
        self._armed = False
        if self._fixed_rate:
            self._arm()
        self.check()
