"""Finds where logs begin, for topic partitions that nobody has a position of yet.

Not at 0: retention may have emptied the front of a log before any node came. And not by the client's own "from the
beginning", which may overtake a later order (`consumer/partition_flows.py`): the brokers are asked, reading starts at a number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.rows.effects import Unavailable
from tidegate_ports.bus import Notices, Topics

_Topic: TypeAlias = tuple[str, str]
"""Name and id."""
ASK_AGAIN_S: Final = 1.0
"""Pause between questions that the brokers do not answer; each has waited for its own patience before."""


class EarliestOffsets:
    """One per process, on its loop. All topic partitions of a topic share one question; one that was made anew is another topic,
    whatever its name, and one holder may know of it before another.

    Args:
        topics: Asks the brokers.
        start: Starts the flow of a topic partition at an offset.
    """

    def __init__(
        self,
        topics: Topics,
        start: Callable[[TopicFacts, int, int], None],
        notices: Notices,
        ask_again_s: float = ASK_AGAIN_S,
    ) -> None:
        self._topics = topics
        self._start = start
        self._notices = notices
        self._ask_again_s = ask_again_s
        self._wanted: dict[_Topic, dict[int, TopicFacts]] = {}
        self._tasks: dict[_Topic, asyncio.Task[None]] = {}

    def find(self, topic: TopicFacts, topic_partition: int) -> None:
        """Starts the flow once the brokers have said where its log begins, unless it is forgotten before."""
        which = (topic.name, topic.id)
        self._wanted.setdefault(which, {})[topic_partition] = topic
        if which not in self._tasks:
            self._tasks[which] = asyncio.get_running_loop().create_task(self._find(which))

    def forget(self, topic: str, topic_partition: int) -> None:
        """Nobody wants it any more, or its position is known by now."""
        for which in [each for each in self._wanted if each[0] == topic]:
            wanted = self._wanted[which]
            wanted.pop(topic_partition, None)
            if not wanted:
                del self._wanted[which]
                if (task := self._tasks.pop(which, None)) is not None:
                    task.cancel()

    async def _find(self, topic: _Topic) -> None:
        # Ends at the latest when the last topic partition is forgotten: while one is wanted nothing else may end it.
        while self._wanted.get(topic):
            try:
                problem = await self._ask(topic)
            except Exception as bug:  # noqa: BLE001 - whatever it is, a topic partition must not stand still silently
                self._notices("task_failed", task="beginnings", exc_info=bug)
                problem = f"where topic {topic[0]} begins: {bug!r}"
            if problem is not None:
                self._notices("waiting_for", message=problem)
                await asyncio.sleep(self._ask_again_s)
        self._wanted.pop(topic, None)
        del self._tasks[topic]

    async def _ask(self, topic: _Topic) -> str | None:
        """Starts those that the answer names; returns what keeps the others waiting."""
        # Those that come while the question is under way may use its answer: a log's beginning only moves forward, and
        # one that moved past the answer is reported as gone, never passed over.
        name, topic_id = topic
        found = await self._topics.begin_offsets(name)
        if isinstance(found, Unavailable):
            return found.what
        wanted = self._wanted.get(topic, {})
        for number in sorted(wanted):
            # By the topic's id as well: a topic that was made anew under its name is not the one that we read.
            offset = found.offsets.get(f"{topic_id}/{number}")
            if offset is not None:
                self._start(wanted.pop(number), number, offset)
        if wanted:
            return f"topic {name} with id {topic_id} has no topic partitions {', '.join(map(str, sorted(wanted)))}"
        return None
