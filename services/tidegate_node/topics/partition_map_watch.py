"""Follows the partition map while the node runs, and updates it after the requests topic was enlarged or recreated.

Runs as a task of the node; reads the map every second. Nodes send each other no word of a change. `tidegate partitions
grow` and this module write
the same transaction, on the condition of the version that they have read. The second writer fails and reads the first
one's map.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Final

from tidegate_core.engine.membership_lease import MapLease
from tidegate_core.rows.effects import Commit, Items, Read, Unavailable
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.writes.partition_map import ClusterMap, MapUnreadable, follow_map, map_of
from tidegate_node.assigned_partitions import AssignedPartitions
from tidegate_node.effects.store_effects import StoreEffects
from tidegate_node.node_identity import NodeFacts
from tidegate_ports.bus import Notices, Topics
from tidegate_ports.clock import Clock

READ_EVERY_S: Final = 1.0
"""Time between reads of one small item. Owners under the next map wait for nodes that have not read it, at most
`former_maps.HAND_OVER_MS`."""
ASK_EVERY_MS: Final = 60_000
"""Delay until added topic partitions are seen if the group has given none of them to this node."""

FOLLOWED: Final = (
    "the map follows it within seconds, and there is nothing to do; what was not read of the old one is gone"
)
MAKE_IT_AGAIN: Final = "make it again, with at least {} topic partitions"


class MapWatch:
    """One per process.

    Attributes:
        made_anew: Requests topic and what to do, if it is not the map's topic; None otherwise.

    Args:
        facts: Facts of the node; `holdings` changes the map in them.
        holdings: Assignments that follow a newer map.
        guard: Map lease, which records which map was in force, and when.
        store: Store with the map.
        topics: Queries the brokers.
    """

    def __init__(
        self,
        facts: NodeFacts,
        holdings: AssignedPartitions,
        guard: MapLease,
        store: StoreEffects,
        topics: Topics,
        clock: Clock,
        notices: Notices,
        token: Callable[[], str] = lambda: f"map/{uuid.uuid4()}",
    ) -> None:
        self._facts = facts
        self._holdings = holdings
        self._guard = guard
        self._store = store
        self._topics = topics
        self._clock = clock
        self._notices = notices
        self._token = token
        self._asked_at: int | None = None
        self._refused: str | None = None
        self.made_anew: tuple[str, str] | None = None

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            try:
                await self.look()
            except Exception as failure:  # noqa: BLE001 - a faulty map may be repaired within the minute
                self._notices("task_failed", task="map", exc_info=failure)
            await asyncio.sleep(READ_EVERY_S)

    async def look(self) -> None:
        """Makes one round. Raises MapUnreadable."""
        asked_at = self._clock.monotonic_ms()
        stored = await self._read()
        if stored is None:
            return
        self._guard.read(stored.version, asked_at)
        if stored.version > self._facts.cluster.version:
            self._notices("map_followed", version=stored.version, topic_partitions=stored.topic_partitions)
            self._holdings.follow(stored)
            self._asked_at = None  # The topic is compared with the new map at once.
        # These two facts already prove a change, so there is no wait for the minute.
        if self._holdings.beyond_the_map or self._holdings.requests_doubted or self._is_due():
            await self._ask(stored)

    def _is_due(self) -> bool:
        return self._asked_at is None or self._clock.monotonic_ms() - self._asked_at >= ASK_EVERY_MS

    async def _read(self) -> ClusterMap | None:
        answer = await self._store.read(Read((MAP_KEY,)))
        if not isinstance(answer, Items):
            return None  # The next round asks again.
        item = answer.found.get(MAP_KEY)
        if item is None:
            raise MapUnreadable("item MAP is gone; it was there when this process started")
        return map_of(item)

    async def _ask(self, stored: ClusterMap) -> None:
        name = self._facts.requests.name
        described = await self._topics.describe([name])
        if isinstance(described, Unavailable) or name not in described:
            return
        self._asked_at = self._clock.monotonic_ms()
        topic = described[name]
        self.made_anew = None if topic.id == stored.topic_id else (name, FOLLOWED)
        try:
            if topic.id != stored.topic_id:
                following = stored.on_another_topic(topic.id, topic.topic_partitions)
            elif topic.topic_partitions > stored.topic_partitions:
                following = stored.grown_to(topic.topic_partitions)
            else:
                return
        except ValueError as unfit:
            if topic.id != stored.topic_id:
                self.made_anew = (
                    name,
                    f"the map cannot follow: {unfit}; {MAKE_IT_AGAIN.format(stored.topic_partitions)}",
                )
            if topic.id != self._refused:
                self._notices("requests_made_anew", topic=name, topic_id=topic.id, message=str(unfit))
            self._refused = topic.id
            return
        self._notices("map_grown", version=following.version, topic_partitions=following.topic_partitions)
        # The result does not matter: the next round reads which map is in force.
        await self._store.commit(Commit(follow_map(following, self._token())))
