"""Whether a topic that a client reads was made anew since.

Kafka's client keeps the greatest leader epoch that it was told of a topic partition, and takes news with a lesser one for old ones (librdkafka
2.16: "ignoring outdated metadata update"). A topic that is deleted and made again begins at 0. Where a broker was restarted while the former one
was there, whoever read that one asks under its epoch, is refused ("Leader epoch is newer than broker epoch"), tells nobody, and reads nothing of
the new one for ever, whatever is assigned. A client that never knew the former one reads it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tidegate_core.rows.effects import Unavailable
from tidegate_ports.bus import Notices, Topic, Topics

LOOK_EVERY_S: Final[float] = 5.0
"""One question about a few names. The news is believed at the second look, so that each broker has it by the time at which a new client asks one."""


class RecreationDetector:
    """One per reader, on its loop.

    Args:
        topics: Asks the brokers.
        tell: Called with the name of a topic that was made anew, once for each time, after one to two rounds.
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
        """The client reads it from now on. Of a topic that it read before, what it knew then counts."""
        self._known.setdefault(topic.name, topic.id)

    def start(self) -> None:
        """Idempotent."""
        if self._looking is None:
            self._looking = self._loop.create_task(self._look_on())

    def stop(self) -> None:
        """Idempotent."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def look(self) -> None:
        """One round. Topics that are not there at the moment are looked for in the next one."""
        if not self._known:
            return
        found = await self._described(sorted(self._known))
        news = {name: topic.id for name, topic in found.items() if topic.id != self._known[name]}
        for name in [name for name, topic_id in news.items() if self._news.get(name) == topic_id]:
            self._known[name] = news.pop(name)
            self._tell(name)
        self._news = news

    async def _described(self, names: Sequence[str]) -> Mapping[str, Topic]:
        """Those of which the brokers tell. Of one that may not be read any more they say so, and that must not hide the others."""
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
            except Exception as bug:  # noqa: BLE001 - whatever it is, the next round looks again
                self._notices("kafka_topic_unknown", topic=", ".join(sorted(self._known)), reason=repr(bug))
