"""Restarts reading of topic partitions that a client has forgotten, or requests from the wrong broker.

Runs as a task of the node; covers requests, events, event sources and wake-ups. On a real broker three topic partitions
whose reading began during a rebalance were never fetched, without any error. Only the reading node can restart them.
The watchdog of other nodes (`watchdog_loop.py`) sees only that the position does not advance, and reports it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from tidegate_core.rows.effects import Unavailable
from tidegate_node.node_identity import NodeFacts
from tidegate_node.topics.offset_gaps import LogGaps
from tidegate_ports.bus import Membership, Notices, PartitionReader, Topics

LOOK_EVERY_S: Final = 30.0
"""Time between rounds. A fetch of the largest records over a slow line ends within it. A stalled reading continues
after one or two rounds."""


class ReadingWatch:
    """One per process.

    Args:
        membership: Reader of the requests topic.
        reader: Reader of all other topics.
        topics: Queries the brokers, once for each topic in a round.
        gaps: Offsets without records; a reader before them is not stalled.
    """

    def __init__(
        self,
        facts: NodeFacts,
        membership: Membership,
        reader: PartitionReader,
        topics: Topics,
        gaps: LogGaps,
        notices: Notices,
    ) -> None:
        self._facts = facts
        self._membership = membership
        self._reader = reader
        self._topics = topics
        self._gaps = gaps
        self._notices = notices

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except Exception as bug:  # noqa: BLE001 - a bug in the repair must not end the node
                self._notices("task_failed", task="reading", exc_info=bug)

    async def look(self) -> None:
        """Makes one round."""
        requests = self._facts.requests
        await self._look_at(requests.name, requests.id, self._membership.standing, self._membership.restart)
        reader = self._reader
        for topic in reader.being_read():
            standing, restart = partial(reader.standing, topic.name), partial(reader.restart, topic.name)
            await self._look_at(topic.name, topic.id, standing, restart)

    async def _look_at(
        self,
        topic: str,
        topic_id: str,
        standing_at: Callable[[Mapping[int, int]], Mapping[int, int]],
        restart: Callable[[int, int], None],
    ) -> None:
        """Checks one topic. It does nothing if the brokers do not answer, or report a recreated topic of that name."""
        found = await self._topics.stable_ends(topic)
        if isinstance(found, Unavailable):
            return
        places = {tuple(place.split("/")): offset for place, offset in found.offsets.items()}
        ends = {int(number): offset for (its_id, number), offset in places.items() if its_id == topic_id}
        standing = standing_at(ends)
        spans = {number: (offset, ends[number]) for number, offset in standing.items()}
        gaps = await self._gaps.among(topic, topic_id, spans)
        if isinstance(gaps, Unavailable):
            return
        for number, offset in standing.items():
            if number not in gaps:
                restart(number, offset)
