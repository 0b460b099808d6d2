"""Topics of messages read once, for the audit: from an instant on, to the ends that the logs have, and what retention has cut off."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.cluster.topic_reader import make_topic, read_topic
from tidegate_kafka.admin.topic_snapshot_reader import LandedOnTopics
from tidegate_kafka.clients.settings import KafkaSettings

if TYPE_CHECKING:
    from tests.support.servers.servers import KafkaForTests

RECORDS = 300
TOPIC_PARTITIONS = 3


@pytest.fixture
def topic(kafka: KafkaForTests) -> str:
    """A topic with numbered records, spread over its topic partitions."""
    name = f"sink-{uuid.uuid4().hex[:8]}"
    make_topic(kafka.bootstrap_servers, name, TOPIC_PARTITIONS)
    send(kafka, name, range(RECORDS))
    return name


def send(kafka: KafkaForTests, topic: str, numbers: Iterable[int]) -> None:
    # Idempotent: in order, and each once, also where a batch comes before its topic partition's leader.
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for number in numbers:
        headers: list[tuple[str, str | bytes | None]] = [("tidegate-id", str(number))]
        producer.produce(topic, b"payload", partition=number % TOPIC_PARTITIONS, headers=headers)
    producer.flush()


def landed(kafka: KafkaForTests, *topics: str, since: int = 0) -> list[tuple[int, bool]]:
    """Returns number and `is_cut` of what is read, in the order of the numbers."""
    reader = LandedOnTopics(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, allow_plaintext=True))
    return sorted((int(dict(each.headers)["tidegate-id"]), each.is_cut) for each in reader.read(topics, since))


def test_given_a_topic_then_all_of_it_is_read_once_and_nothing_is_cut(kafka: KafkaForTests, topic: str) -> None:
    assert landed(kafka, topic, "not-there") == [(number, False) for number in range(RECORDS)]


def test_given_an_instant_then_what_was_appended_before_it_is_left_out(kafka: KafkaForTests, topic: str) -> None:
    send(kafka, topic, [RECORDS])
    records = read_topic(kafka.bootstrap_servers, topic)
    since = next(each.appended_at for each in records if int(each.header("tidegate-id")) == RECORDS)
    # Of one topic partition append times rise; the last of the others may have the very same.
    wanted = sorted((int(each.header("tidegate-id")), False) for each in records if each.appended_at >= since)

    assert (RECORDS, False) in wanted
    assert landed(kafka, topic, since=since) == wanted
    assert landed(kafka, topic, since=since + 3_600_000) == []


def test_given_records_that_are_gone_then_the_first_that_is_left_says_so(kafka: KafkaForTests, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, 50)]).values():
        future.result(30)
    found = landed(kafka, topic)

    assert len(found) == RECORDS - 50
    assert [number for number, is_cut in found if is_cut] == [150]


def test_given_a_topic_partition_whose_records_are_all_gone_then_it_says_so(kafka: KafkaForTests, topic: str) -> None:
    """Retention may empty a log: nobody can say then what is not on it."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, RECORDS // TOPIC_PARTITIONS)]).values():
        future.result(30)
    begun = time.time_ns() // 1_000_000
    reader = LandedOnTopics(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, allow_plaintext=True))
    found = list(reader.read([topic], 0))

    assert len([each for each in found if each.headers]) == RECORDS - RECORDS // TOPIC_PARTITIONS
    (emptied,) = [each for each in found if each.is_cut]
    assert (emptied.topic, emptied.headers, emptied.append_time >= begun) == (topic, (), True)
