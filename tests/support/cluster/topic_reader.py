"""What lies on topics: whole, or as it arrives with the time at which a consumer saw it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AdminClient,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
)

from tests.support.cluster.background import Background
from tests.support.cluster.until import now_ms, until
from tidegate_kafka.clients.connectivity import Connectivity, CutOff, close_aside, others_find
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.record_conversion import to_record
from tidegate_ports.bus import Record
from tidegate_ports.clock import SystemClock

CLOCK = SystemClock()
ASK_TIMEOUT_S = 10.0
OF_THE_TOPIC = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
POLL_S = 0.2
BATCH_WAIT_S = 0.1
"""A batch waits so long for its last record."""
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


def add_topic_partitions(bootstrap_servers: str, name: str, topic_partitions: int) -> None:
    """Has a topic grow to so many topic partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for grown in admin.create_partitions([NewPartitions(name, topic_partitions)]).values():
        grown.result(ASK_TIMEOUT_S)


def make_topic(bootstrap_servers: str, name: str, topic_partitions: int, **config: str) -> None:
    """Makes a topic with append times of the broker."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    new = NewTopic(name, topic_partitions, config={"message.timestamp.type": "LogAppendTime", **config})
    for made in admin.create_topics([new]).values():
        made.result(ASK_TIMEOUT_S)

    def has_leaders() -> bool:
        found = admin.list_topics(name, ASK_TIMEOUT_S).topics[name]
        return len(found.partitions) == topic_partitions and all(each.leader >= 0 for each in found.partitions.values())

    until(has_leaders, f"topic {name} has leaders")


def make_topic_anew(bootstrap_servers: str, name: str) -> None:
    """Deletes a topic with all that lies in it, and makes another one with as many topic partitions and the same settings.

    Raises:
        NotInTime: The brokers did not make it.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    topic_partitions = len(admin.list_topics(name, ASK_TIMEOUT_S).topics[name].partitions)
    (described,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, name)]).values()
    config = {
        key: entry.value for key, entry in described.result(ASK_TIMEOUT_S).items() if entry.source == OF_THE_TOPIC
    }
    for deleted in admin.delete_topics([name]).values():
        deleted.result(ASK_TIMEOUT_S)

    def is_made() -> bool:
        for made in admin.create_topics([NewTopic(name, topic_partitions, config=config)]).values():
            try:
                made.result(ASK_TIMEOUT_S)
            except KafkaException as refused:
                if refused.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                return False  # For some milliseconds the old one is being deleted still.
        return True

    until(is_made, f"topic {name} is made anew")


def ends_of(bootstrap_servers: str, name: str) -> Mapping[int, int]:
    """Returns the end of each topic partition's log."""
    consumer = _consumer(bootstrap_servers, {})
    try:
        return {
            place.partition: consumer.get_watermark_offsets(place, ASK_TIMEOUT_S)[1]
            for place in _places(consumer, [name])
        }
    finally:
        consumer.close()


def read_topic(bootstrap_servers: str, topic: str) -> list[Arrived]:
    """Returns all records that a topic had when this was called.

    Raises:
        NotInTime: The broker did not give them.
    """
    consumer = _consumer(bootstrap_servers, {})
    try:
        places = _places(consumer, [topic])
        ends = {place.partition: consumer.get_watermark_offsets(place, ASK_TIMEOUT_S)[1] for place in places}
        consumer.assign(places)
        found: list[Arrived] = []

        def is_whole() -> bool:
            found.extend(_arrived(each, 0) for each in consumer.consume(BATCH_MAX, BATCH_WAIT_S) if not each.error())
            got = {record.topic_partition: record.offset + 1 for record in found}
            return all(got.get(number, 0) >= end for number, end in ends.items())

        if any(ends.values()):
            until(is_whole, f"all records of {topic}", look_every_s=0.0)
        return found
    finally:
        consumer.close()


def each_of_topic(bootstrap_servers: str, topic: str) -> Iterator[Record]:
    """Yields the records that a topic had when this was called, one batch in memory, with repeated headers.

    Raises:
        NotInTime: The broker did not give them.
    """
    consumer = _consumer(bootstrap_servers, {})
    try:
        places = _places(consumer, [topic])
        ends = {place.partition: consumer.get_watermark_offsets(place, ASK_TIMEOUT_S)[1] for place in places}
        left = {number for number, end in ends.items() if end}
        consumer.assign(places)
        while left:
            batch = until(
                lambda: [each for each in consumer.consume(BATCH_MAX, BATCH_WAIT_S) if not each.error()],
                f"records of {topic}",
                look_every_s=0.0,
            )
            for message in batch:
                record = to_record(message, "")
                if record.offset < ends[record.topic_partition]:
                    yield record
                if record.offset + 1 >= ends[record.topic_partition]:
                    left.discard(record.topic_partition)
    finally:
        consumer.close()


class TopicWatcher(Background):
    """Reads topics from their beginning, in a thread, until it is left; outages of the broker are waited out.

    Attributes:
        records: What has arrived so far, in order of arrival; other threads may read it.
    """

    def __init__(self, bootstrap_servers: str, *topics: str) -> None:
        super().__init__(f"watch {' '.join(topics)}")
        self.records: list[Arrived] = []
        self._bootstrap_servers = bootstrap_servers
        self._consumer = self._made()
        self._next = {(each.topic, each.partition): each.offset for each in _places(self._consumer, topics)}
        self._assign()

    def close(self) -> None:
        self._consumer.close()

    def documents(self, start: int = 0) -> Iterator[dict[str, Any]]:
        """Yields the JSON objects that arrived, from number `start` on."""
        for record in self.records[start:]:
            yield record.document

    def run(self) -> None:
        reach = reach_of(self._bootstrap_servers)
        while not self.stopping.is_set():
            # One by one: the moment of arrival is what some tests measure.
            message = self._consumer.poll(POLL_S)
            if message is not None and message.error() is None:
                arrived = _arrived(message, now_ms())
                self.records.append(arrived)
                self._next[arrived.topic, arrived.topic_partition] = arrived.offset + 1
                reach.heard(CLOCK.monotonic_ms())
                continue
            try:
                reach.look(self._consumer, CLOCK.monotonic_ms())
            except CutOff:
                close_aside(self._consumer)
                self._consumer = self._made()
                self._assign()
                reach = reach_of(self._bootstrap_servers)

    def _made(self) -> Consumer:
        return _consumer(self._bootstrap_servers, {"fetch.wait.max.ms": 500, "fetch.min.bytes": 1})

    def _assign(self) -> None:
        self._consumer.assign([TopicPartition(*where, offset) for where, offset in self._next.items()])


def reach_of(bootstrap_servers: str) -> Connectivity:
    """Returns what tells a client that has lost the broker for good, as behind a restart of it any of ours can."""
    return Connectivity(
        KafkaSettings(bootstrap_servers=bootstrap_servers, allow_plaintext=True), others_find, CLOCK.monotonic_ms()
    )


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


def _places(consumer: Consumer, topics: Sequence[str]) -> list[TopicPartition]:
    """Returns all topic partitions, from their beginning."""
    return [
        TopicPartition(topic, number, OFFSET_BEGINNING)
        for topic in topics
        for number in consumer.list_topics(topic, ASK_TIMEOUT_S).topics[topic].partitions
    ]


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
