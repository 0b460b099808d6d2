"""Finds the id of the topic that records lie in, by asking the brokers after the records were read.

Kafka's client reads by name and offset. If a topic is recreated and the new log passes the client's offset before it
finds a leader, the client silently reads on in the new topic; a busy producer needs 100 ms for that. So records are
handed on with the id that the brokers reported after the read. For a moment, while the change spreads among them,
brokers may still report the old id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from tidegate_core.rows.effects import Unavailable
from tidegate_ports.bus import Notices, Topics

ASK_GAP_S: Final = 0.02
"""Gap between two queries about a topic that is read all the time: 50 a second, which adds at most as much latency."""
ASK_AGAIN_S: Final = 0.25
"""Gap after no answer, or after the answer that the topic does not exist."""
ABSENT_ANSWERS_MAX: Final = 8
"""After so many answers that the topic does not exist, it was deleted and not recreated. So the records were the
deleted topic's."""

Found = TypeVar("Found")


class TopicIds(Generic[Found]):
    """Pending records of one reader, on its loop. Their number is bounded by the flows' credits.

    Args:
        topics: Port that queries the brokers.
        hand_on: Receives the records in order with the topic's id, or None when the topic no longer exists. If it
            raises, it is called again with the same arguments.
        loop: Loop that runs the queries.
        notices: Receives log events.
    """

    def __init__(
        self,
        topics: Topics,
        hand_on: Callable[[Found, str | None], None],
        *,
        loop: asyncio.AbstractEventLoop,
        notices: Notices,
    ) -> None:
        self._topics = topics
        self._hand_on = hand_on
        self._loop = loop
        self._notices = notices
        self._waiting: dict[str, list[Found]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def put(self, topic: str, found: Found) -> None:
        """Adds records of the topic with this name. One query serves all records that were added before it."""
        self._waiting.setdefault(topic, []).append(found)
        if topic not in self._tasks:
            self._tasks[topic] = self._loop.create_task(self._serve(topic))

    def stop(self) -> None:
        """Stops: pending records are dropped."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._waiting.clear()

    async def _serve(self, topic: str) -> None:
        try:
            while waiting := self._waiting.pop(topic, []):
                topic_id = await self._id_of(topic)
                for found in waiting:
                    await self._give(topic, found, topic_id)
                await asyncio.sleep(ASK_GAP_S)
        finally:
            # Remove the task even after an unexpected end, or later records would wait for ever. After a stop, a newer
            # task may be registered already.
            if self._tasks.get(topic) is asyncio.current_task():
                del self._tasks[topic]

    async def _give(self, topic: str, found: Found, topic_id: str | None) -> None:
        """Hands records on, and repeats until they are taken: going on with later records would skip these."""
        while True:
            try:
                self._hand_on(found, topic_id)
            except Exception as bug:  # noqa: BLE001 - a bug must not stop a topic silently
                self._notices("kafka_records_not_taken", topic=topic, reason=repr(bug))
                await asyncio.sleep(ASK_AGAIN_S)
            else:
                return

    async def _id_of(self, topic: str) -> str | None:
        absent = 0
        while absent < ABSENT_ANSWERS_MAX:
            try:
                found = await self._topics.describe([topic])
            except Exception as bug:  # noqa: BLE001 - a bug must not stop a topic silently
                self._notices("kafka_topic_unknown", topic=topic, reason=repr(bug))
                found = Unavailable(repr(bug))
            if not isinstance(found, Unavailable):
                if topic in found:
                    return found[topic].id
                absent += 1
            await asyncio.sleep(ASK_AGAIN_S)
        return None
