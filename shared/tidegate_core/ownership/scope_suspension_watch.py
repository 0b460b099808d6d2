"""What a partition actor knows of the wide controls, and how it hears of a change (DESIGN 6).

The item is read after the shards are fenced, whenever somebody pokes, and every few seconds: a lost poke costs latency only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, ScopeSuspensions, StoredSuspensions

CHECK_MS = 5_000
"""Whoever waits for a wide control that a lost poke told of waits so much longer."""


class SuspensionListener(Protocol):
    """A shard, as far as this file knows it."""

    def suspensions_changed(self, controls: ScopeSuspensions, read_at: int) -> None: ...


class ScopeSuspensionWatch:
    """One per life of a partition actor.

    Args:
        host: Shared parts of the partition actor.
        shards: Who is told of what was read; filled as they are acquired.

    Attributes:
        known: As last read; its version never goes back.
        read_at: When that read began: what moves the item later is not in it.
    """

    def __init__(self, host: ActorContext, shards: Mapping[int, SuspensionListener]) -> None:
        self.known = NO_SUSPENSIONS
        self.read_at = 0
        self._host = host
        self._shards = shards
        self._poked = Signal("controls")
        self._armed = False

    def check(self) -> None:
        """There may be something new."""
        self._host.operations.raise_(self._poked)

    def read(self) -> Operation[None]:
        """Reads the present controls."""
        began = self._host.now
        found = yield from self._host.read_for_good(Read((keys.SUSPENSIONS_KEY,)))
        assert isinstance(found, Items)
        item = found.found.get(keys.SUSPENSIONS_KEY)
        if item is not None and (stored := from_item(StoredSuspensions, item)).version > self.known.version:
            self.known = stored.controls
        self.read_at = began

    def serve(self) -> Operation[None]:
        """Looks for good, and tells the shards."""
        while True:
            yield from self.read()
            for shard in list(self._shards.values()):
                shard.suspensions_changed(self.known, self.read_at)
            self._look_later()
            yield self._poked

    def _look_later(self) -> None:
        """One alarm, however often somebody pokes."""
        if not self._armed:
            self._armed = True
            at = self._host.now + CHECK_MS + self._host.jitter("controls", CHECK_MS // 10)
            self._host.call_at(at, self._ring, routine=True)

    def _ring(self) -> None:
        self._armed = False
        self.check()
