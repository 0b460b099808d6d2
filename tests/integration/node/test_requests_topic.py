"""The requests topic of a real broker grows, or is made anew, under nodes that serve and are not started again (I6)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package re-exports them without saying so
    AdminClient,
    NewPartitions,
)

from tidegate_core.rows import keys
from tidegate_core.rows.effects import Unavailable
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.writes.fencing import whole
from tidegate_core.writes.partition_map import ClusterMap, map_of
from tidegate_kafka.admin.topic_metadata import TopicFacts
from tidegate_node.bootstrap import initialise
from tidegate_node.commands.grow.grow_command import run as grow
from tidegate_node.startup_checks import NotYet, StartRefused

if TYPE_CHECKING:
    from tests.integration.node.conftest import Cluster

BEFORE, AFTER, MOST = 4, 6, 8
NOTICED_S = 120.0
"""Members see new topic partitions within 30 s, nodes follow in seconds; and as much patience as a busy machine needs."""
SCHEDULES = 6
LAST_S = "2s"
LAST = [f"last-{number}" for number in range(4 * MOST)]
"""Messages behind all others, some for each topic partition."""
STAY = {"TIDEGATE_KAFKA__SESSION_MS": "30000", "TIDEGATE_KAFKA__POLL_GAP_MS_MAX": "60000"}
"""Nobody leaves the group because the machine stood still: what another node takes over without a hand-over may come twice."""


class Load:
    """Sends messages in turn to all topic partitions that there are, until it is told to end; each key's are numbered."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._topic = cluster.settings.kafka.topic("requests")
        self._producers: list[Producer] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.out = cluster.make_topic("out")
        self.sent: list[str] = []
        self._topic_partitions = 0
        self.sees(BEFORE)
        self.failure: BaseException | None = None

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        assert [producer.flush(60) for producer in self._producers] == [0] * len(self._producers)
        assert self.failure is None

    def sees(self, topic_partitions: int) -> None:
        """From now on records go to so many; a client of its own knows them all."""
        producer = Producer({"bootstrap.servers": self._cluster.settings.kafka.bootstrap_servers})

        def known() -> bool:
            return len(producer.list_topics(self._topic, 10).topics[self._topic].partitions) == topic_partitions

        self._cluster.until(known, "brokers tell of it")
        self._producers.append(producer)
        self._topic_partitions = topic_partitions

    def _run(self) -> None:
        try:
            while not self._ends.wait(0.05):
                self._send(len(self.sent))
        except BaseException as failure:  # noqa: BLE001 - told to the test
            self.failure = failure

    def _send(self, number: int) -> None:
        name = f"m-{number:05d}"
        request = {
            "type": "message.send",
            "namespace": "tests",
            "topic": self.out,
            "payload": {"of": name},
            "after": f"{1 + number % 9}s",
            "id": name,
        }
        where = number % self._topic_partitions
        self._producers[-1].produce(self._topic, json.dumps(request).encode(), partition=where)
        self.sent.append(name)


def _two_nodes(cluster: Cluster) -> None:
    for _ in range(2):
        cluster.start_node(**STAY)
    _until_all_serve(cluster, "all serve")


def _until_all_serve(cluster: Cluster, what: str) -> None:
    nodes = cluster.nodes

    def all_serve() -> bool:
        # In sum all shards are served before the second node is a member as well.
        shares = [each.metric("tidegate_serving_shards") for each in nodes]
        return (
            min(shares) > 0 and sum(shares) == cluster.shards and all(each.ask("/readyz")[0] == 200 for each in nodes)
        )

    cluster.until(all_serve, what, NOTICED_S)


def _map(cluster: Cluster) -> ClusterMap:
    return map_of(cluster.store().get([MAP_KEY])[MAP_KEY])


def _schedule(name: str, file: Path) -> dict[str, Any]:
    return {
        "namespace": "tests",
        "name": name,
        "target": {"type": "program", "program": {"type": "python", "file": str(file)}},
        "trigger": {"type": "data_partitions", "dataset": "raw", "count": 1},
    }


def _program(cluster: Cluster) -> Path:
    file = cluster.folder / "program.py"
    file.write_text("pass\n", encoding="utf-8")
    return file


def _until_followed(cluster: Cluster, load: Load, topic_partitions: int) -> None:
    """Waits, under load, until nodes serve by the map of so many topic partitions."""
    load.sees(topic_partitions)
    cluster.until(lambda: _map(cluster).topic_partitions == topic_partitions, "the map has grown", NOTICED_S)
    followed = len(load.sent)
    _until_all_serve(cluster, "all serve under the next map")
    cluster.until(lambda: len(load.sent) > followed + 100, "some are sent under the next map")


def _assert_each_delivered_once(cluster: Cluster, load: Load) -> None:
    def delivered() -> Counter[str]:
        return Counter(str(each.value["of"]) for each in cluster.records(load.out))

    cluster.until(lambda: len(delivered()) >= len(load.sent), "all are delivered", NOTICED_S)
    _send_all(cluster, [_send(load.out, name, LAST_S) for name in LAST], MOST)
    # A second one of any of them would be there before these.
    cluster.until(lambda: set(LAST) <= delivered().keys(), "messages behind all of them are delivered", NOTICED_S)
    counts = delivered()
    assert sorted(counts.keys() - set(LAST)) == load.sent
    assert [name for name, count in counts.items() if count > 1] == []


def _assert_all_maps_requests_are_applied(cluster: Cluster) -> None:
    program = _program(cluster)
    assert cluster.apply(_schedule("before", program))["status"] == "unchanged"
    for number in range(SCHEDULES):
        assert cluster.apply(_schedule(f"after-{number}", program))["status"] == "accepted"
    event = {"type": "data.partition", "namespace": "tests", "dataset": "raw", "partition": "d1"}
    cluster.send("events", event)
    cluster.until(lambda: len(cluster.runs("succeeded")) == 1 + SCHEDULES, "each schedule has run", NOTICED_S)
    assert [node.metric("tidegate_actor_failures_total") for node in cluster.nodes] == [0] * len(cluster.nodes)
    cluster.start_node(**STAY)
    cluster.until(lambda: cluster.nodes[-1].ask("/readyz")[0] == 200, "one that comes later serves as well", NOTICED_S)


def test_given_growth_by_the_command_and_then_by_another_tool_under_load_then_nodes_follow_and_each_message_is_delivered_once(
    cluster: Cluster,
) -> None:
    _two_nodes(cluster)
    assert cluster.apply(_schedule("before", _program(cluster)))["status"] == "accepted"
    with Load(cluster) as load:
        cluster.until(lambda: len(load.sent) > 40, "some are sent under the first map")
        assert grow(AFTER, cluster.settings) == 0
        assert grow(AFTER, cluster.settings) == 0  # As after a crash: it is so already.
        _until_followed(cluster, load, AFTER)
        _grow_by_another_tool(cluster, MOST)
        _until_followed(cluster, load, MOST)
    _assert_each_delivered_once(cluster, load)
    assert grow(BEFORE, cluster.settings) == 2
    assert grow(cluster.shards + 1, cluster.settings) == 2
    cuts = [(cut.version, cut.topic_partitions) for cut in _map(cluster).history]
    assert cuts == [(1, BEFORE), (2, AFTER), (3, MOST)]
    _assert_all_maps_requests_are_applied(cluster)


def _grow_by_another_tool(cluster: Cluster, topic_partitions: int) -> None:
    name = cluster.settings.kafka.topic("requests")
    admin = AdminClient({"bootstrap.servers": cluster.settings.kafka.bootstrap_servers})
    admin.create_partitions([NewPartitions(name, topic_partitions)])[name].result()


def test_given_a_topic_that_is_made_anew_under_its_readers_then_nothing_that_was_read_is_lost_or_doubled(
    cluster: Cluster,
) -> None:
    _two_nodes(cluster)
    out = cluster.make_topic("out")
    program = _program(cluster)
    assert cluster.apply(_schedule("before", program))["status"] == "accepted"
    old = _map(cluster).topic_id
    _send_all(cluster, [_send(out, f"old-{number:02d}", "50s") for number in range(12)])
    # Not due before its cancel is read, however long it takes to find the topic made anew.
    _send_all(cluster, [_send(out, "cancelled", "1h", key="k")])
    cluster.until(lambda: sum(_positions(cluster, old)) == 14, "all of the old one is read")

    name = cluster.settings.kafka.topic("requests")
    admin = AdminClient({"bootstrap.servers": cluster.settings.kafka.bootstrap_servers})
    admin.delete_topics([name])[name].result()
    cluster.until(lambda: _is_made(cluster, old), "it is made again")
    # More than lay in the old one: a client may read on at its offset. Without ids, so that each record is a message of its own.
    _send_all(cluster, [_send(out, f"new-{number:02d}", "1s") for number in range(60)])
    cancel = {"id": "c", "type": "message.cancel", "namespace": "tests", "key": "k"}
    _send_all(cluster, [cancel])

    wanted = sorted([f"old-{number:02d}" for number in range(12)] + [f"new-{number:02d}" for number in range(60)])
    cluster.until(lambda: len(cluster.records(out)) >= len(wanted), "all are delivered", NOTICED_S)
    assert cluster.receipt("c")["status"] == "cancelled"
    assert sorted(str(each.value["of"]) for each in cluster.records(out)) == wanted
    assert cluster.apply(_schedule("before", program))["status"] == "unchanged"
    stored = _map(cluster)
    assert [cut.topic_id for cut in stored.history] == [old, stored.topic_id]
    assert sum(_positions(cluster, old)) == 14
    _until_all_serve(cluster, "nothing stands still any more")
    cluster.start_node(**STAY)
    cluster.until(lambda: cluster.nodes[-1].ask("/readyz")[0] == 200, "one that comes later serves as well", NOTICED_S)


def _send(out: str, name: str, after: str, **more: str) -> dict[str, Any]:
    return {"type": "message.send", "namespace": "tests", "topic": out, "payload": {"of": name}, "after": after, **more}


def _send_all(cluster: Cluster, requests: list[dict[str, Any]], topic_partitions: int = BEFORE) -> None:
    """In turn to all topic partitions, by a client that knows the topic as it is now."""
    producer = Producer({"bootstrap.servers": cluster.settings.kafka.bootstrap_servers, "message.timeout.ms": 60_000})
    refused: list[object] = []

    def answered(error: object, _: object) -> None:
        refused.extend([] if error is None else [error])

    for number, request in enumerate(requests):
        producer.produce(
            cluster.settings.kafka.topic("requests"),
            json.dumps(request).encode(),
            partition=number % topic_partitions,
            on_delivery=answered,
        )
    assert producer.flush(60) == 0
    assert refused == []


def _positions(cluster: Cluster, topic_id: str) -> list[int]:
    store, stored = cluster.store(), _map(cluster)
    wanted = [keys.topic_position(stored.cluster_id, topic_id, number) for number in range(BEFORE)]
    found = store.get(wanted)
    return [whole(found[key], "next") if key in found else 0 for key in wanted]


def _is_made(cluster: Cluster, old: str) -> bool:
    """As an operator does it, with `tidegate init`; for some milliseconds the old one is being deleted still."""
    name = cluster.settings.kafka.topic("requests")
    found = asyncio.run(TopicFacts(cluster.settings.kafka).describe([name]))
    assert not isinstance(found, Unavailable), found
    if name not in found:
        with contextlib.suppress(NotYet, StartRefused):
            initialise(cluster.settings)
        return False
    return found[name].id != old
