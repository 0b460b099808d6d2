"""Has a topic partition of the requests topic read again that the client has forgotten.

Seen once on a real broker: three topic partitions whose reading began while the group was still being balanced were never
fetched, and no error told of it. Whatever the cause, the remedy is one order. Nobody else could give it: a stranger who watches
(`watching.py`) only sees that the position stands, and tells people.
"""

from __future__ import annotations

import asyncio
from typing import Final

from tidegate_core.effects import Unavailable
from tidegate_node.facts import NodeFacts
from tidegate_node.log_gaps import LogGaps
from tidegate_ports.bus import Membership, Notices, Topics

LOOK_EVERY_S: Final = 30.0
"""A fetch of the largest records over a slow line ends within it; a reading that stands goes on after one to two of them."""


class ReadingWatch:
    """One per process.

    Args:
        membership: Reads the requests topic.
        topics: Asks the brokers, one question a look.
        gaps: What is behind its end because of offsets that are no records' does not stand.
    """

    def __init__(
        self, facts: NodeFacts, membership: Membership, topics: Topics, gaps: LogGaps, notices: Notices
    ) -> None:
        self._facts = facts
        self._membership = membership
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
        """One round; nothing comes of it where the brokers do not answer, or tell of another topic under the name."""
        requests = self._facts.requests
        found = await self._topics.end_offsets(requests.name)
        if isinstance(found, Unavailable):
            return
        places = {tuple(place.split("/")): offset for place, offset in found.offsets.items()}
        ends = {int(number): offset for (topic_id, number), offset in places.items() if topic_id == requests.id}
        standing = self._membership.standing(ends)
        spans = {number: (offset, ends[number]) for number, offset in standing.items()}
        gaps = await self._gaps.among(requests.name, requests.id, spans)
        if isinstance(gaps, Unavailable):
            return
        for number, offset in standing.items():
            if number not in gaps:
                self._membership.restart(number, offset)
