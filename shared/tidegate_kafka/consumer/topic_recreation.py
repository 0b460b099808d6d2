"""Detects that a topic which a client reads was recreated.

Kafka's client keeps the greatest leader epoch that it learned for a topic partition, and ignores metadata with a lower
one (librdkafka 2.16: "ignoring outdated metadata update"). A recreated topic starts at epoch 0. If a broker restarted
during the life of the former topic, a client that read it asks with the former epoch and is refused ("Leader epoch is
newer than broker epoch"). It reports no error and never reads the new topic, whatever is assigned. A client that never
knew the former topic can read it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tidegate_core.rows.effects import Unavailable
from tidegate_ports.bus import Notices, Topic, Topics

LOOK_EVERY_S: Final[float] = 5.0
"""Interval of the query about all names. A new id counts at the second check, so that every broker knows it before a
new client asks one."""


class RecreationDetector:
    """Detector of one reader, on its loop.

    Args:
        topics: Port that queries the brokers.
        tell: Called with the name of a recreated topic, once for each recreation, after one to two checks.
        loop: Loop that runs the checks.
        notices: Receives log events.
    """

    def __init__(
        self,
        topics: Topics,
        tell: Callable[[str], None],
        *,
        loop: asyncio.AbstractEventLoop,
        notices: Notices,
    ) -> None:
        self._topics = topics
        self._tell = tell
        self._loop = loop
        self._notices = notices
        self._known: dict[str, str] = {}
        self._news: dict[str, str] = {}
        self._looking: asyncio.Task[None] | None = None

    def know(self, topic: Topic) -> None:
        """Registers a topic that the client reads from now on. For a topic registered before, the earlier id counts."""
        self._known.setdefault(topic.name, topic.id)

    def start(self) -> None:
        """Starts the periodic check. Idempotent."""
        if self._looking is None:
            self._looking = self._loop.create_task(self._look_on())

    def stop(self) -> None:
        """Stops the periodic check. Idempotent."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def look(self) -> None:
        """Runs one check. A topic that does not exist now is checked again in the next one."""
        if not self._known:
            return
        found = await self._described(sorted(self._known))
        news = {name: topic.id for name, topic in found.items() if topic.id != self._known[name]}
        for name in [name for name, topic_id in news.items() if self._news.get(name) == topic_id]:
            self._known[name] = news.pop(name)
            self._tell(name)
        self._news = news

    async def _described(self, names: Sequence[str]) -> Mapping[str, Topic]:
        """Returns the topics that the brokers describe. One topic without read permission fails a joint query, so each
        is then asked for alone.
        """
        found = await self._topics.describe(names)
        if not isinstance(found, Unavailable):
            return found
        each = await asyncio.gather(*(self._topics.describe([name]) for name in names)) if len(names) > 1 else []
        return {name: topic for told in each if not isinstance(told, Unavailable) for name, topic in told.items()}

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except Exception as bug:  # noqa: BLE001 - the next check runs in any case
                self._notices("kafka_topic_unknown", topic=", ".join(sorted(self._known)), reason=repr(bug))
