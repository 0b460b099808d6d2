"""Has topic partitions read again that a client has forgotten, or that it asks the wrong broker for: of requests, events, sources and pokes.

Seen once on a real broker: three topic partitions whose reading began while the group was still being balanced were never
fetched, and no error told of it. Whatever the cause, the remedy is one order. Nobody else could give it: a stranger who watches
(`watchdog_loop.py`) only sees that the position stands, and tells people.
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
"""A fetch of the largest records over a slow line ends within it; a reading that stands goes on after one to two of them."""


class ReadingWatch:
    """One per process.

    Args:
        membership: Reads the requests topic.
        reader: Reads all others.
        topics: Asks the brokers, one question for each topic in a look.
        gaps: What is behind its end because of offsets that are no records' does not stand.
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
            except Exception as bug:  # noqa: BLE001 - it is there to mend what others leave undone, and must not end them
                self._notices("task_failed", task="reading", exc_info=bug)

    async def look(self) -> None:
        """One round."""
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
        """Nothing comes of it where the brokers do not answer, or tell of another topic under the name."""
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
