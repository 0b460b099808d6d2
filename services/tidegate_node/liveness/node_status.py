"""Says of this process what an operator wants to know, and hears whether one wants it to hold nothing. Thin."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from importlib.metadata import version
from typing import Final

from tidegate_core.language.time.zones import TZDATA_VERSION
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read, Write
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.node_status import NodeStatus
from tidegate_core.rows.schema_version import NEWEST, StoreSchema
from tidegate_core.rows.store_operations import Batch, Delete, Put
from tidegate_node.effects.store_effects import StoreEffects
from tidegate_node.liveness.health_server import Standing
from tidegate_node.liveness.heartbeat_loop import HeartbeatLoop
from tidegate_node.node_identity import NodeFacts
from tidegate_ports.bus import Notices
from tidegate_ports.clock import Clock

PRESENT_EVERY_S: Final = 5.0
"""So long an order to drain takes at most, and a card that is five of them old belongs to a process that is gone."""


class NodeStatusWriter:
    """One per process.

    Args:
        card: Makes the card.
        drain: Told whether this process is to hold nothing; repeats are fine.
        migrated: Told in which version rows are written by now; repeats are fine.
        outdated: Told why this process may not serve any more: rows are written in a version that it cannot read.
    """

    def __init__(
        self,
        owner: str,
        store: StoreEffects,
        notices: Notices,
        card: Callable[[], NodeStatus],
        drain: Callable[[bool], Awaitable[None]],
        migrated: Callable[[int], None],
        outdated: Callable[[str], None],
        every_s: float = PRESENT_EVERY_S,
    ) -> None:
        self._owner = owner
        self._store = store
        self._notices = notices
        self._card = card
        self._drain = drain
        self._migrated = migrated
        self._outdated = outdated
        self._every_s = every_s
        self._writing: asyncio.Task[object] | None = None

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            try:
                await self.turn()
            except Exception as failure:  # noqa: BLE001 - a bug in what people look at must not end what serves
                self._notices("task_failed", task="presence", exc_info=failure)
            await asyncio.sleep(self._every_s)

    async def turn(self) -> None:
        """Hears the order, obeys it, and writes the card as it stands then."""
        order = keys.drain_order(self._owner)
        answer = await self._store.read(Read((order, keys.SCHEMA_KEY)))
        if isinstance(answer, Items):
            schema = StoreSchema.of(answer.found.get(keys.SCHEMA_KEY))
            # Not what is about to be: that is taken back where it finds this process in its way.
            if (refusal := replace(schema, closing=None).refusal()) is not None:
                self._outdated(refusal)
            else:
                self._migrated(schema.writes)
            await self._drain(order in answer.found)
        card, key = self._card(), keys.node_status(self._owner)
        put = Put(key, {**to_item(card, key), "expires_at": card.expires_at})
        self._writing = asyncio.get_running_loop().create_task(self._store.write(Write(Batch("card", (put,)))))
        # Who ends this task ends no call that a thread has begun: `leave` has to know of it.
        await asyncio.shield(self._writing)

    async def leave(self) -> None:
        """Takes the card along: who ends well is not missed. One that stays is said to be silent, then gone, which does no harm."""
        if self._writing is not None:
            # Else the card that is under way comes after it was taken away, and peers call a node silent that ended well.
            await asyncio.wait([self._writing])
        keys_of_it = (keys.node_status(self._owner), keys.drain_order(self._owner))
        await self._store.write(Write(Batch("card", tuple(Delete(key) for key in keys_of_it))))


class NodeStatusBuilder:
    """One per process."""

    def __init__(
        self,
        facts: NodeFacts,
        standing: Callable[[], Standing],
        shards: Callable[[Iterable[int]], int],
        writes: Callable[[], int],
        heartbeats: HeartbeatLoop,
        clock: Clock,
    ) -> None:
        self._facts = facts
        self._standing = standing
        self._shards = shards
        self._writes = writes
        self._heartbeats = heartbeats
        self._clock = clock
        self._started_at = clock.now_ms()

    def __call__(self) -> NodeStatus:
        standing = self._standing()
        return NodeStatus(
            owner=self._facts.owner,
            node=self._facts.name,
            version=version("tidegate"),
            tzdata=TZDATA_VERSION,
            started_at=self._started_at,
            seen=self._clock.now_ms(),
            clock_offset_ms=self._heartbeats.clock_offset_ms,
            held=tuple(sorted(standing.held)),
            serving=tuple(sorted(standing.serving)),
            shards=self._shards(standing.held),
            unready=tuple(standing.why_unready()),
            drained=standing.drained,
            reads=NEWEST,
            writes=self._writes(),
            findings=standing.broken,
        )
