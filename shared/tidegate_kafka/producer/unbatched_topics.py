"""Topics whose records go one by one, because a broker has refused a batch of them.

Brokers take or refuse a batch as a whole: they bound its size (`max.message.bytes` of the topic), and refuse it for one record that is not valid
there, such as one without a key where the topic is compacted. The library (librdkafka 2.16; not so Java's client) neither divides it nor says which
record it was. What is due together would be refused together, as often as it is tried.
"""

from __future__ import annotations

import threading
from typing import Final

from tidegate_core.rows.effects import NotProduced
from tidegate_kafka.clients.error_codes import UNAVAILABLE
from tidegate_kafka.clients.settings import KafkaSettings

BATCH_BYTES_MAX: Final = 1_000_000
"""The library's own `batch.size`: a record that is larger has a batch for itself in any case."""
TOPICS_MAX: Final = 10_000
"""More are no topics of one cluster; the oldest are forgotten, and found out again."""


class OneByOne:
    """Of one publisher. Its threads tell, the loop asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._topics: dict[str, None] = {}

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    def refused_together(self, topic: str, size: int, refused: NotProduced) -> NotProduced:
        """Returns the outcome of a record that was refused, maybe for what lay beside it."""
        if size >= BATCH_BYTES_MAX:
            return refused
        with self._lock:
            self._topics[topic] = None
            while len(self._topics) > TOPICS_MAX:
                del self._topics[next(iter(self._topics))]
        return NotProduced(UNAVAILABLE, f"{refused.message}; the next time it goes without others")

    def refused_alone(self, topic: str, _: int, refused: NotProduced) -> NotProduced:
        """The same of one that lay alone. It may be what spoiled the batches: the topic's records go together again."""
        with self._lock:
            self._topics.pop(topic, None)
        return refused


def one_by_one(settings: KafkaSettings) -> KafkaSettings:
    """For a producer of which each record is a batch by itself."""
    return settings.model_copy(update={"extra": {**settings.extra, "batch.num.messages": "1"}})
