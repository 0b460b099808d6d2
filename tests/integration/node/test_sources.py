"""A topic of the users' own on a real broker: read through its source, by several nodes, across a kill and a growth (I3)."""

from __future__ import annotations

import json
import signal
import time
import uuid
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from tests.support.cluster.topic_reader import make_topic
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Item, RangeRead

if TYPE_CHECKING:
    from tests.integration.node.conftest import Cluster, NodeProcess

TOPIC_PARTITIONS = 3
FILES = 40
AGO_MS = 36 * 3_600_000
"""A producer's own time, which Kafka keeps by default and nothing may be judged by; within the topic's retention."""


def _make_topic(cluster: Cluster) -> str:
    name = f"lake-{uuid.uuid4().hex[:10]}"
    times = {"message.timestamp.type": "CreateTime"}
    make_topic(cluster.settings.kafka.bootstrap_servers, name, TOPIC_PARTITIONS, **times)
    return name


def _produce(cluster: Cluster, topic: str, *values: bytes, commit: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.settings.kafka.bootstrap_servers})
    at = time.time_ns() // 1_000_000 - AGO_MS
    for number, value in enumerate(values):
        headers: dict[str, str | bytes | None] = {"commit-id": f"{commit}-{number}", "content-length": "1000"}
        producer.produce(topic, value, headers=headers, partition=number % TOPIC_PARTITIONS, timestamp=at)
    assert producer.flush(60) == 0


def _files(prefix: str, count: int) -> list[bytes]:
    return [json.dumps({"file": {"day": f"{prefix}{number}"}}).encode() for number in range(count)]


def _ask(cluster: Cluster, kind: str, namespace: str = "tests", **fields: Any) -> dict[str, Any]:
    request = {"id": str(uuid.uuid4()), "type": f"source.{kind}", "namespace": namespace, "name": "landed", **fields}
    cluster.send("requests", request)
    return cluster.receipt(request["id"])


def _source(topic: str) -> dict[str, Any]:
    event = {
        "dataset": "raw",
        "partition": {"pointer": "/file/day"},
        "bytes": {"header": "content-length"},
        "id": {"header": "commit-id"},
    }
    return {"kind": "source", "topic": topic, "event": event}


def _schedule(cluster: Cluster) -> dict[str, Any]:
    text = (
        "import tidegate_spark as t\nm = t.context().manifest\nt.set_output('days', sorted(e.partition for e in m))\n"
    )
    program = {"type": "python", "file": str(cluster.program(text))}
    return {
        "namespace": "tests",
        "name": "all-files",
        "target": {"type": "program", "program": program},
        "trigger": {"type": "data_partitions", "dataset": "raw", "count": FILES},
    }


def _told(node: NodeProcess, event: str, topic: str) -> set[int]:
    """Topic partitions of which the node has logged that, also where it was given some of them anew."""
    return {each["topic_partition"] for each in node.events(event) if each["topic"] == topic}


def test_given_a_source_then_each_record_counts_once_whatever_happens_to_the_nodes(cluster: Cluster) -> None:
    first = cluster.start_node()
    first.until_serving(cluster.shards)
    topic = _make_topic(cluster)
    _produce(cluster, topic, *_files("before-the-source-", 5), commit="old")
    assert _ask(cluster, "apply", spec=_source("nowhere-to-be-found"))["status"] == "rejected"
    assert _ask(cluster, "apply", spec=_source(topic))["status"] == "accepted"
    _produce(cluster, topic, *_files("before-the-schedule-", 5), commit="early")
    assert cluster.apply(_schedule(cluster))["status"] == "accepted"

    half = _files("day-", FILES)[: FILES // 2]
    _produce(cluster, topic, *half, b"no JSON", commit="half")
    first.end(signal.SIGKILL)
    cluster.start_node().until_serving(cluster.shards)
    _produce(cluster, topic, *half, commit="half")  # A producer that does not know whether it had come through.
    _produce(cluster, topic, *_files("day-", FILES)[FILES // 2 :], commit="rest")

    (run,) = cluster.until(lambda: cluster.runs("succeeded"), "the run of all files")
    assert run["outputs"]["days"] == sorted(f"day-{number}" for number in range(FILES))
    letters = cluster.until(lambda: cluster.records("events.dlq"), "the record that is no event")
    assert {letter.headers["tidegate.error.source"] for letter in letters} == {b"tests/landed"}
    assert {letter.value["raw"] for letter in letters} == {"no JSON"}


def test_given_a_delete_then_what_is_produced_after_it_is_not_heard(serving: Cluster) -> None:
    cluster = serving
    (node,) = serving.nodes
    topic = _make_topic(cluster)
    _ask(cluster, "apply", spec=_source(topic))
    assert cluster.apply(_schedule(cluster))["status"] == "accepted"
    cluster.until(lambda: len(_told(node, "topic_read", topic)) == TOPIC_PARTITIONS, "all topic partitions are read")
    _produce(cluster, topic, *_files("day-", FILES - 1), commit="a")

    assert _ask(cluster, "delete")["status"] == "accepted"
    _produce(cluster, topic, *_files("late-", 9), commit="b")
    cluster.until(lambda: len(_told(node, "topic_left", topic)) == TOPIC_PARTITIONS, "none is read any more")
    receipt = _ask(cluster, "apply", spec=_source(topic), expected_version=0)
    assert (receipt["status"], receipt["version"]) == ("accepted", 2)
    _produce(cluster, topic, *_files("new-", FILES), commit="c")

    (run,) = cluster.until(lambda: cluster.runs("succeeded"), "a run")
    assert not [day for day in run["outputs"]["days"] if day.startswith("late-")]
    assert node.metric("tidegate_actor_failures_total") == 0


def _produce_in_a_transaction(cluster: Cluster, topic: str, *values: bytes) -> None:
    servers = cluster.settings.kafka.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"tests-{topic}"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.commit_transaction(60)


def test_given_a_source_written_in_transactions_then_a_time_out_does_not_wait_for_their_marks(serving: Cluster) -> None:
    """The mark has an offset and is no record (KIP-98): a position stands before it for good, which looked unread for 5 minutes."""
    cluster, namespace = serving, "in-transactions"
    topic = _make_topic(cluster)
    source = {"kind": "source", "topic": topic, "event": {"dataset": "raw", "partition": {"pointer": "/file/day"}}}
    assert _ask(cluster, "apply", namespace, spec=source)["status"] == "accepted"
    pair = [{"type": "data_partitions", "dataset": name, "count": 1} for name in ("raw", "other")]
    trigger = {"type": "all_of", "correlate": "data_partition", "timeout": "5s", "triggers": pair}
    assert cluster.apply(_schedule(cluster) | {"trigger": trigger, "namespace": namespace})["status"] == "accepted"

    _produce_in_a_transaction(cluster, topic, *_files("day-", 1))

    (row,) = cluster.until(lambda: _ledger(cluster, namespace), "the time-out")
    assert (row["disposition"], row["reason"]) == ("expired", "trigger_timeout")
    assert "did not wait" not in str(row.get("detail"))


def _ledger(cluster: Cluster, namespace: str) -> list[Item]:
    store = cluster.store()
    ranges = [
        RangeRead(keys.shard_pk(shard), f"L#{namespace}/", f"L#{namespace}/~", table="history")
        for shard in range(cluster.shards)
    ]
    return [item for each in ranges for item in store.query(each).items]
