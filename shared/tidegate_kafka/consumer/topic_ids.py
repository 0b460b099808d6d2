"""Which topic records lie in, asked of the brokers once they were read.

Kafka's client reads by name and offset. In a topic that is deleted and made again it reads on without a word where the new log
has grown beyond its offset by the time at which it finds a leader again; with a busy producer that takes 100 ms. So what was
read is handed on with the id that the brokers told after it was read. They may tell the old one still, for the moment in which
the news spreads among them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from tidegate_core.rows.effects import Unavailable
from tidegate_ports.bus import Notices, Topics

ASK_GAP_S: Final = 0.02
"""Between two questions about a topic that is being read all the time: 50 a second, and as much latency at most."""
ASK_AGAIN_S: Final = 0.25
"""After no answer, or one that the topic is not there."""
ABSENT_ANSWERS_MAX: Final = 8
"""Then it was deleted and not made again, so what was read lay in no other one."""

Found = TypeVar("Found")


class TopicIds(Generic[Found]):
    """One per reader, on its loop. What waits is bounded by the flows' credits.

    Args:
        topics: Asks the brokers.
        hand_on: Called with what was read, in order, and the topic's id; None when there is no such topic any more. Where it
            raises it is called again, with the same.
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
        """Takes what was read of the topic of this name; one question serves all that came before it is asked."""
        self._waiting.setdefault(topic, []).append(found)
        if topic not in self._tasks:
            self._tasks[topic] = self._loop.create_task(self._serve(topic))

    def stop(self) -> None:
        """What waits is not handed on any more."""
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
            # Else whatever is put after an end that nobody thought of would wait for ever. Behind a stop another one may be at it already.
            if self._tasks.get(topic) is asyncio.current_task():
                del self._tasks[topic]

    async def _give(self, topic: str, found: Found, topic_id: str | None) -> None:
        """Hands it on, again and again while it is not taken: who goes on with what comes after it would skip it."""
        while True:
            try:
                self._hand_on(found, topic_id)
            except Exception as bug:  # noqa: BLE001 - whatever it is, a topic must not stand still silently
                self._notices("kafka_records_not_taken", topic=topic, reason=repr(bug))
                await asyncio.sleep(ASK_AGAIN_S)
            else:
                return

    async def _id_of(self, topic: str) -> str | None:
        absent = 0
        while absent < ABSENT_ANSWERS_MAX:
            try:
                found = await self._topics.describe([topic])
            except Exception as bug:  # noqa: BLE001 - whatever it is, a topic must not stand still silently
                self._notices("kafka_topic_unknown", topic=topic, reason=repr(bug))
                found = Unavailable(repr(bug))
            if not isinstance(found, Unavailable):
                if topic in found:
                    return found[topic].id
                absent += 1
            await asyncio.sleep(ASK_AGAIN_S)
        return None
