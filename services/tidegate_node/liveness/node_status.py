"""Node status: the row that shows this process to operators, and the drain order that an operator gives.

Runs as a task of the node. It writes the status row every few seconds, and deletes it on a clean end.
"""

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
"""Longest delay of a drain order. A status row older than five of these belongs to a process that is gone."""


class NodeStatusWriter:
    """One per process.

    Args:
        card: Builder of the status row.
        drain: Callback with whether this process must hold no shard; repeats are harmless.
        migrated: Callback with the version in which rows are written now; repeats are harmless.
        outdated: Callback with the reason why this process may not serve: it cannot read the version of the rows.
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
            except Exception as failure:  # noqa: BLE001 - a bug in the status row must not end a serving node
                self._notices("task_failed", task="presence", exc_info=failure)
            await asyncio.sleep(self._every_s)

    async def turn(self) -> None:
        """Reads the drain order, follows it, and writes the resulting status row."""
        order = keys.drain_order(self._owner)
        answer = await self._store.read(Read((order, keys.SCHEMA_KEY)))
        if isinstance(answer, Items):
            schema = StoreSchema.of(answer.found.get(keys.SCHEMA_KEY))
            # The announced version does not count. The migration withdraws the announcement if it finds this process.
            if (refusal := replace(schema, closing=None).refusal()) is not None:
                self._outdated(refusal)
            else:
                self._migrated(schema.writes)
            await self._drain(order in answer.found)
        card, key = self._card(), keys.node_status(self._owner)
        put = Put(key, {**to_item(card, key), "expires_at": card.expires_at})
        self._writing = asyncio.get_running_loop().create_task(self._store.write(Write(Batch("card", (put,)))))
        # Cancelling this task does not end a call on a thread. `leave` must know of that call.
        await asyncio.shield(self._writing)

    async def leave(self) -> None:
        """Deletes the status row on a clean end. A row that stays is harmless: it is reported as silent, then gone."""
        if self._writing is not None:
            # Otherwise the pending write could follow the delete, and peers would report a node as silent that ended
            # cleanly.
            await asyncio.wait([self._writing])
        keys_of_it = (keys.node_status(self._owner), keys.drain_order(self._owner))
        await self._store.write(Write(Batch("card", tuple(Delete(key) for key in keys_of_it))))


class NodeStatusBuilder:
    """Builds the status row from the state that the health pages report. One per process."""

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
