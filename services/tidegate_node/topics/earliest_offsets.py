"""Finds the first offset of topic partitions without a stored position.

Used by `bus_effects.py`. Offset 0 would be wrong: retention may have deleted the front of the log before any node
started. The client's own "from the beginning" may overtake a later order (`consumer/partition_flows.py`). So the
brokers are asked, and reading starts at a number.
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
"""Pause after an unanswered question; each question has already waited for its own time-out."""


class EarliestOffsets:
    """One per process, on its loop.

    All topic partitions of a topic share one question. A recreated topic is a different topic with the same name, and
    assignments may learn of it at different times.

    Args:
        topics: Queries the brokers.
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
        """Starts the flow when the brokers have reported the first offset, unless `forget` comes first."""
        which = (topic.name, topic.id)
        self._wanted.setdefault(which, {})[topic_partition] = topic
        if which not in self._tasks:
            self._tasks[which] = asyncio.get_running_loop().create_task(self._find(which))

    def forget(self, topic: str, topic_partition: int) -> None:
        """Cancels a search: the topic partition is no longer read, or its position is known."""
        for which in [each for each in self._wanted if each[0] == topic]:
            wanted = self._wanted[which]
            wanted.pop(topic_partition, None)
            if not wanted:
                del self._wanted[which]
                if (task := self._tasks.pop(which, None)) is not None:
                    task.cancel()

    async def _find(self, topic: _Topic) -> None:
        # Ends when the last topic partition is forgotten, and not before.
        while self._wanted.get(topic):
            try:
                problem = await self._ask(topic)
            except Exception as bug:  # noqa: BLE001 - no error may leave a topic partition stuck silently
                self._notices("task_failed", task="beginnings", exc_info=bug)
                problem = f"where topic {topic[0]} begins: {bug!r}"
            if problem is not None:
                self._notices("waiting_for", message=problem)
                await asyncio.sleep(self._ask_again_s)
        self._wanted.pop(topic, None)
        del self._tasks[topic]

    async def _ask(self, topic: _Topic) -> str | None:
        """Starts the topic partitions that the answer names; returns why the others wait."""
        # Topic partitions that are added while the query runs may use its result. The first offset only grows. If it has passed
        # the answer, reading reports a lost offset and skips nothing.
        name, topic_id = topic
        found = await self._topics.begin_offsets(name)
        if isinstance(found, Unavailable):
            return found.what
        wanted = self._wanted.get(topic, {})
        for number in sorted(wanted):
            # Match the topic's id too: a recreated topic of the same name is not the one to read.
            offset = found.offsets.get(f"{topic_id}/{number}")
            if offset is not None:
                self._start(wanted.pop(number), number, offset)
        if wanted:
            return f"topic {name} with id {topic_id} has no topic partitions {', '.join(map(str, sorted(wanted)))}"
        return None
