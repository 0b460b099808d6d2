"""The command `tidegate audit` against real tables and topics: clean as a node has left them, and not once something is amiss."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.support.cluster.topic_reader import Arrived, make_topic, read_topic
from tests.support.cluster.until import until
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Delete, Item, Key, Put, RangeRead

if TYPE_CHECKING:
    from tests.integration.node.conftest import Cluster

MESSAGES = 12
FIRES = 3
TOPIC_PARTITIONS = 2
TIMEOUT_S = 90.0


@dataclass(frozen=True, slots=True)
class History:
    """What a node has made, which has ended since.

    Attributes:
        begin: Before all of it, milliseconds since the epoch.
        end: Nominal instant of the last fire that is audited.
    """

    cluster: Cluster
    topic: str
    begin: int
    end: int

    def audit(self, *options: str) -> tuple[int, dict[str, Any]]:
        """Returns exit code and document of the command, as a user starts it."""
        span = ("--from", format_instant(self.begin), "--to", format_instant(self.end))
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "tidegate_cli.main",
                "audit",
                *span,
                "--reads-per-s",
                "5000",
                "-o",
                "json",
                *options,
            ],
            env={**os.environ, **self.cluster.environment},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert ended.stdout, ended.stderr
        return ended.returncode, json.loads(ended.stdout)

    def rows(self, prefix: str) -> list[Item]:
        """Returns the rows of the history table under a prefix, of all shards."""
        store = self.cluster.store()
        return [
            item
            for shard in range(self.cluster.shards)
            for item in store.query(
                RangeRead(keys.shard_pk(shard), prefix, f"{prefix}{keys.LAST}", table="history")
            ).items
        ]


@pytest.fixture
def history(cluster: Cluster) -> History:
    """A schedule's fires and messages, all delivered; nodes are gone."""
    begin = now_ms()
    topic = f"sink-{uuid.uuid4().hex[:8]}"
    make_topic(cluster.settings.kafka.bootstrap_servers, topic, TOPIC_PARTITIONS)
    node = cluster.start_node()
    node.until_serving(cluster.shards)
    for number in range(MESSAGES):
        document = {"type": "message.send", "namespace": "tests", "topic": topic, "payload": {"number": number}}
        cluster.send("requests", {"id": f"m-{number}-{uuid.uuid4()}", "deliver_at": format_instant(begin), **document})
    receipt = cluster.apply(
        {
            "namespace": "tests",
            "name": "pulse",
            "target": {"type": "program", "program": {"type": "python", "file": str(cluster.program("print(1)"))}},
            "trigger": {"type": "every", "period": "1s"},
            "overlap": "allow",
        }
    )
    assert receipt["status"] == "accepted"
    cluster.until(lambda: len(on(cluster, topic)) == MESSAGES, "all messages have landed")
    fires = {parse_instant(instant) for instant in receipt["next"][:FIRES]}
    made = History(cluster, topic, begin, max(fires))

    def ended() -> set[int]:
        return {int(str(row["nominal"])) for row in made.rows("L#tests/pulse#")}

    # Just these: runs beside each other end in any order.
    cluster.until(lambda: fires <= ended(), "the schedule has fired", detail=node.log.read_text)
    assert node.end(signal.SIGTERM) == 0
    return made


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def on(cluster: Cluster, topic: str) -> list[Arrived]:
    return read_topic(cluster.settings.kafka.bootstrap_servers, topic)


def named(found: dict[str, Any], kind: str) -> list[tuple[str, str]]:
    return [(each["subject"], each["occurrence"]) for each in found["differences"] if each["kind"] == kind]


def test_given_a_history_then_what_is_removed_of_it_is_found_and_named(history: History) -> None:
    code, found = history.audit("--sink")
    assert (code, found["differences"], found["not_audited"]) == (0, [], [])
    assert (found["counts"]["launched"], found["counts"]["passed"]) == (FIRES, MESSAGES)
    assert found["counts"]["seen"] == MESSAGES

    _lose_a_row(history)
    _lose_a_record(history)


def _lose_a_row(history: History) -> None:
    row = next(each for each in history.rows("L#tests/pulse#") if int(str(each["nominal"])) == history.end)
    store, key = history.cluster.store(), Key(str(row["pk"]), str(row["sk"]), "history")
    assert not store.write([Delete(key)])
    code, found = history.audit()
    assert code == 1
    assert named(found, "missing") == [("tests/pulse", format_instant(history.end))]
    assert named(found, "entry_gone"), "its place and its run tell of it too"

    assert not store.write([Put(key, row)])
    assert history.audit()[0] == 0


def _lose_a_record(history: History) -> None:
    """A topic cannot forget one record among others; one that was made anew may lack it."""
    servers = history.cluster.settings.kafka.bootstrap_servers
    lost, *others = on(history.cluster, history.topic)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([history.topic])[history.topic].result(TIMEOUT_S)
    until(lambda: history.topic not in admin.list_topics(timeout=TIMEOUT_S).topics, "the topic is gone")
    make_topic(servers, history.topic, TOPIC_PARTITIONS)
    producer = Producer({"bootstrap.servers": servers})
    for each in others:
        producer.produce(history.topic, each.value, each.key, headers=dict(each.headers))
    assert producer.flush(TIMEOUT_S) == 0

    assert history.audit()[0] == 0, "without --sink nobody looks at topics"
    code, found = history.audit("--sink")
    assert code == 1
    ((subject, occurrence),) = named(found, "message_lost")
    assert subject.startswith("shard ")
    assert occurrence.split(" ")[0] == lost.header("tidegate-id")
