"""The real broker: answers, keeps its data, comes back where it was."""

import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from tests.support.servers.class_archives import archive_kafkas_classes
from tests.support.servers.servers import stand_still
from tidegate_bricks.broker_config import ExtraListener
from tidegate_bricks.errors import PortTaken
from tidegate_bricks.free_ports import free_port
from tidegate_bricks.jar_cache import ensure_jars
from tidegate_bricks.java_runtime import find_java
from tidegate_bricks.java_server import ARCHIVES_VARIABLE, QUICK_START
from tidegate_bricks.kafka_broker import KafkaBrick, answering_cluster
from tidegate_bricks.kafka_storage import CHECKPOINT_NAME, IDENTITY_NAME, new_id
from tidegate_bricks.releases import KAFKA

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


def test_given_kafkas_own_tool_then_it_formats_a_folder_as_the_brick_does(tmp_path: Path) -> None:
    """The brick copies a file of the tool's. If the copy is of another release, features are missing or unknown."""
    brick = KafkaBrick(tmp_path)
    brick.choose_ports()
    java = find_java()
    *common, _main, settings = brick.arguments(java, ensure_jars(KAFKA))
    ours, theirs = tmp_path / "log", tmp_path / "tool"
    copied = tmp_path / "tool.properties"
    copied.write_text(Path(settings).read_text().replace(str(ours), str(theirs)))
    tool = ["kafka.tools.StorageTool", "format", "-t", new_id(), "-c", str(copied)]
    subprocess.run([str(java.executable), *QUICK_START, *common, *tool], check=True, capture_output=True)
    assert {file.name for file in ours.iterdir()} == {file.name for file in theirs.iterdir()}
    assert features_of(ours / CHECKPOINT_NAME) == features_of(theirs / CHECKPOINT_NAME)
    assert names_in(ours / IDENTITY_NAME) == names_in(theirs / IDENTITY_NAME)


def features_of(checkpoint: Path) -> list[bytes]:
    """Returns the record batches without what differs from one formatting to the next: instants and checksums."""
    content, batches = checkpoint.read_bytes(), list[bytes]()
    while content:
        # Kafka's batch format 2: base offset, length, leader epoch, magic; CRC at 17; attributes and last offset; two instants at 27 to 43.
        length = 12 + int.from_bytes(content[8:12])
        batch, content = content[:length], content[length:]
        batches.append(batch[:17] + batch[21:27] + batch[43:])
    return batches


def names_in(properties: Path) -> set[str]:
    return {line.partition("=")[0] for line in properties.read_text().splitlines() if not line.startswith("#")}


@pytest.mark.nightly  # Writing the archive takes two brokers' starts of CPU; all brokers of `make test` start from it.
def test_given_archived_classes_then_a_broker_starts_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARCHIVES_VARIABLE, str(tmp_path))
    archive_kafkas_classes()
    (archive,) = tmp_path.glob("*.jsa")
    archive_kafkas_classes()
    assert [*tmp_path.glob("*.jsa")] == [archive]
    with KafkaBrick(None) as broker:
        assert str(archive) in Path(f"/proc/{broker.pid}/maps").read_text()


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
