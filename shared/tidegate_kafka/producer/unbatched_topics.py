"""Topics whose records are sent one by one because a broker refused a batch of them.

Brokers take or refuse a batch as a whole. They bound its size (the topic's `max.message.bytes`) and refuse it because
of one invalid record, such as one without a key in a compacted topic. The library (librdkafka 2.16, unlike Java's
client) neither splits the batch nor says which record is invalid. Records that are due together would be refused
together, at every retry.
"""

from __future__ import annotations

import threading
from typing import Final

from tidegate_core.rows.effects import NotProduced
from tidegate_kafka.clients.error_codes import UNAVAILABLE
from tidegate_kafka.clients.settings import KafkaSettings

BATCH_BYTES_MAX: Final = 1_000_000
"""The library's own `batch.size`: a larger record has its own batch in any case."""
TOPICS_MAX: Final = 10_000
"""Most topics remembered. When there are more, the oldest are forgotten and detected again."""


class OneByOne:
    """Topics of one publisher. Its threads report refusals; the loop queries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._topics: dict[str, None] = {}

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    def refused_together(self, topic: str, size: int, refused: NotProduced) -> NotProduced:
        """Returns the outcome of a record whose batch was refused, perhaps because of another record."""
        if size >= BATCH_BYTES_MAX:
            return refused
        with self._lock:
            self._topics[topic] = None
            while len(self._topics) > TOPICS_MAX:
                del self._topics[next(iter(self._topics))]
        return NotProduced(UNAVAILABLE, f"{refused.message}; the next time it is sent alone")

    def refused_alone(self, topic: str, _: int, refused: NotProduced) -> NotProduced:
        """Returns the outcome of a record that was refused alone. It may have spoiled the batches, so batches are tried
        again.
        """
        with self._lock:
            self._topics.pop(topic, None)
        return refused


def one_by_one(settings: KafkaSettings) -> KafkaSettings:
    """Returns the settings of a producer that sends each record as a batch of one."""
    return settings.model_copy(update={"extra": {**settings.extra, "batch.num.messages": "1"}})
