"""What lies on topics: whole, or as it arrives with the time at which a consumer saw it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from tidegate_kafka.records import to_record
from tidegate_testkit.cluster.waiting import now_ms

ASK_TIMEOUT_S = 10.0
POLL_S = 0.2
BATCH_WAIT_S = 0.1
"""A batch waits so long for its last record, also when the end of the topic has been said."""
BATCH_MAX = 1_000
GROUP = "tests.readers"
"""Nothing is ever committed; the client only wants a name."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """One record.

    Attributes:
        appended_at: The broker's append time, ms since the epoch.
        received_at: When this process's consumer had it, ms since the epoch; 0 where it was read afterwards.
    """

    topic: str
    topic_partition: int
    offset: int
    key: bytes | None
    value: bytes
    headers: Mapping[str, bytes]
    appended_at: int
    received_at: int = 0

    @property
    def document(self) -> dict[str, Any]:
        """The value as a JSON object."""
        document = json.loads(self.value)
        assert isinstance(document, dict)
        return document

    def header(self, name: str) -> str:
        return self.headers[name].decode()


def make_topic(bootstrap_servers: str, name: str, topic_partitions: int, **config: str) -> None:
    """Makes a topic with append times of the broker."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    new = NewTopic(name, topic_partitions, config={"message.timestamp.type": "LogAppendTime", **config})
    for made in admin.create_topics([new]).values():
        made.result(ASK_TIMEOUT_S)


def read_topic(bootstrap_servers: str, topic: str) -> list[Arrived]:
    """Returns all records of a topic so far."""
    consumer = _consumer(bootstrap_servers, {"enable.partition.eof": True})
    try:
        waiting = _assign(consumer, [topic])
        found: list[Arrived] = []
        while waiting:
            for message in consumer.consume(BATCH_MAX, BATCH_WAIT_S):
                if message.error() is None:
                    found.append(_arrived(message, 0))
                else:
                    waiting -= 1
        return found
    finally:
        consumer.close()


class TopicWatcher:
    """Reads topics from their beginning, in a thread, until it is left; outages of the broker are waited out.

    Attributes:
        records: What has arrived so far, in order of arrival; other threads may read it.
    """

    def __init__(self, bootstrap_servers: str, *topics: str) -> None:
        self.records: list[Arrived] = []
        self._consumer = _consumer(bootstrap_servers, {"fetch.wait.max.ms": 500, "fetch.min.bytes": 1})
        _assign(self._consumer, topics)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name=f"watch {' '.join(topics)}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def documents(self, start: int = 0) -> Iterator[dict[str, Any]]:
        """Yields the JSON objects that arrived, from number `start` on."""
        for record in self.records[start:]:
            yield record.document

    def _read(self) -> None:
        while not self._stop.is_set():
            # One by one: the moment of arrival is what some tests measure.
            message = self._consumer.poll(POLL_S)
            if message is not None and message.error() is None:
                self.records.append(_arrived(message, now_ms()))


def _consumer(bootstrap_servers: str, more: Mapping[str, Any]) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
            **more,
        }
    )


def _assign(consumer: Consumer, topics: Sequence[str]) -> int:
    """Assigns all topic partitions from their beginning; returns how many."""
    places = [
        TopicPartition(topic, number, OFFSET_BEGINNING)
        for topic in topics
        for number in consumer.list_topics(topic, ASK_TIMEOUT_S).topics[topic].partitions
    ]
    consumer.assign(places)
    return len(places)


def _arrived(message: Message, received_at: int) -> Arrived:
    record = to_record(message, "")
    return Arrived(
        message.topic() or "",
        record.topic_partition,
        record.offset,
        record.key,
        record.value or b"",
        dict(record.headers),
        record.append_time_ms,
        received_at,
    )
