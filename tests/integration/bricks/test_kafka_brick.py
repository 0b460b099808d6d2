"""The real broker: answers, keeps its data, comes back where it was."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from tests.support.servers.servers import stand_still
from tidegate_bricks.errors import PortTaken
from tidegate_bricks.kafka import KafkaBrick, answering_cluster
from tidegate_bricks.kafka_config import ExtraListener
from tidegate_bricks.ports import free_port

Until = Callable[[Callable[[], bool], str], None]
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBrick]:
    with KafkaBrick(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture
def topic(broker: KafkaBrick) -> str:
    """A new topic with one topic partition."""
    name = f"test.{uuid.uuid4().hex}"
    create_topic(broker, name)
    return name


def create_topic(broker: KafkaBrick, name: str) -> None:
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    settings = {"max.message.bytes": str(6 * 1024 * 1024)}
    client.create_topics([NewTopic(name, num_partitions=1, replication_factor=1, config=settings)])[name].result(
        PATIENCE_S
    )


def produce(broker: KafkaBrick, topic: str, value: bytes) -> None:
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.max.bytes": 7 * 1024 * 1024})
    producer.produce(topic, value, on_delivery=lambda error, _message: failures.append(error))
    producer.flush(PATIENCE_S)
    assert failures == [None]


def consume(broker: KafkaBrick, topic: str) -> bytes | None:
    """Returns the topic's first record."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": uuid.uuid4().hex})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(1, PATIENCE_S)
        assert len(messages) == 1
        return messages[0].value()
    finally:
        consumer.close()


def test_given_record_then_it_is_consumed(broker: KafkaBrick, topic: str) -> None:
    produce(broker, topic, b"hello")
    assert consume(broker, topic) == b"hello"


def test_given_record_of_five_mebibytes_then_it_passes(broker: KafkaBrick, topic: str) -> None:
    dead_letter = b"x" * (5 * 1024 * 1024)
    produce(broker, topic, dead_letter)
    assert consume(broker, topic) == dead_letter


def test_given_unknown_topic_then_it_is_not_made(broker: KafkaBrick) -> None:
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    name = f"test.{uuid.uuid4().hex}"
    client.list_topics(name, timeout=PATIENCE_S)
    assert name not in client.list_topics(timeout=PATIENCE_S).topics


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_given_short_session_then_both_group_protocols_join(broker: KafkaBrick, topic: str, protocol: str) -> None:
    produce(broker, topic, b"hello")
    session = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1500} if protocol == "classic" else {}
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": uuid.uuid4().hex,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            **session,
        }
    )
    try:
        consumer.subscribe([topic])
        assert [message.value() for message in consumer.consume(1, PATIENCE_S)] == [b"hello"]
    finally:
        consumer.close()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_given_end_and_start_then_records_and_address_are_the_same(
    broker: KafkaBrick, topic: str, end: str, until: Until
) -> None:
    produce(broker, topic, b"kept")
    endpoint, clusters = broker.bootstrap_servers, list[str]()

    def answers() -> bool:
        """It is asked for a second, which a busy machine may take for itself."""
        if (cluster := answering_cluster(endpoint)) is not None:
            clusters.append(cluster)
        return cluster is not None

    until(answers, "the broker answers")
    getattr(broker, end)()
    assert answering_cluster(endpoint) is None
    broker.start()
    assert broker.bootstrap_servers == endpoint
    until(answers, "it answers again")
    assert clusters == clusters[:1] * 2
    assert consume(broker, topic) == b"kept"


def test_given_pause_then_broker_is_mute_until_it_goes_on(broker: KafkaBrick, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    stand_still(broker)
    with pytest.raises(KafkaException):
        client.list_topics(timeout=0.5)
    broker.resume()
    produce(broker, topic, b"after")
    assert consume(broker, topic) == b"after"


def test_given_two_brokers_that_want_one_port_then_second_takes_another(broker: KafkaBrick) -> None:
    taken = int(broker.bootstrap_servers.rpartition(":")[2])
    proxy, announced = free_port(), free_port()
    second = KafkaBrick(None, preferred_port=taken, extra_listeners=[ExtraListener("PROXY", proxy, announced)])
    with second:
        assert second.bootstrap_servers != broker.bootstrap_servers
        announcing = AdminClient({"bootstrap.servers": f"127.0.0.1:{proxy}", "log_level": 0}).list_topics(
            timeout=PATIENCE_S
        )
        assert [node.port for node in announcing.brokers.values()] == [announced]


def test_given_port_that_was_asked_for_is_taken_then_start_says_so(broker: KafkaBrick, tmp_path: Path) -> None:
    taken = int(broker.bootstrap_servers.rpartition(":")[2])
    with pytest.raises(PortTaken, match=f"port {taken} is taken"):
        KafkaBrick(tmp_path, port=taken).start()


def test_given_setting_that_kafka_refuses_then_error_shows_the_reason(tmp_path: Path) -> None:
    broker = KafkaBrick(tmp_path, extra_config={"log.segment.bytes": "1"})
    with pytest.raises(Exception, match=r"log\.segment\.bytes"):
        broker.start()
