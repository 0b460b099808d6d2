"""The events topic of a real broker grows, or is made anew, under nodes that read it and are not started again (I3)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package re-exports them without saying so
    AdminClient,
    NewPartitions,
)

from tidegate_core.ingest.topic_follower import ASK_AGAIN_MS
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Unavailable
from tidegate_kafka.admin.topic_metadata import TopicFacts
from tidegate_node.bootstrap import initialise
from tidegate_node.startup_checks import NotYet, StartRefused
from tidegate_ports.bus import Topic

if TYPE_CHECKING:
    from tests.integration.node.conftest import Cluster

NOTICED_S = ASK_AGAIN_MS / 1000 + 30
"""A minute, and as much patience as a busy machine needs."""
DAYS = 24


def _admin(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.settings.kafka.bootstrap_servers})


def _name(cluster: Cluster) -> str:
    return cluster.settings.kafka.topic("events")


def _produce(cluster: Cluster, days: Sequence[str], topic_partitions: Sequence[int]) -> None:
    """One event for each day, in turn to these topic partitions; a client of its own knows them all."""
    producer = Producer({"bootstrap.servers": cluster.settings.kafka.bootstrap_servers})
    refused: list[KafkaError] = []

    def answered(error: KafkaError | None, _: Message) -> None:
        refused.extend([] if error is None else [error])

    for number, day in enumerate(days):
        event = {"type": "data.partition", "namespace": "tests", "dataset": "raw", "partition": day, "id": day}
        where = topic_partitions[number % len(topic_partitions)]
        producer.produce(_name(cluster), json.dumps(event).encode(), partition=where, on_delivery=answered)
    assert producer.flush(60) == 0
    assert refused == []


def _days(first: int, count: int) -> list[str]:
    return [f"day-{number:02d}" for number in range(first, first + count)]


def _schedule(cluster: Cluster) -> dict[str, Any]:
    text = "import tidegate_spark as t\nm = t.context().manifest\nt.set_output('days', [e.partition for e in m])\n"
    program = {"type": "python", "file": str(cluster.program(text))}
    return {
        "namespace": "tests",
        "name": "all-days",
        "target": {"type": "program", "program": program},
        "trigger": {"type": "data_partitions", "dataset": "raw", "count": DAYS},
    }


def _told(cluster: Cluster, event: str) -> list[int]:
    """Topic partitions of the events topic of which a node has logged that, in any order."""
    told = [each for node in cluster.nodes for each in node.events(event)]
    return sorted(each["topic_partition"] for each in told if each["topic"] == _name(cluster))


def _moves(cluster: Cluster) -> list[set[int]]:
    """Topic partitions that went from a node at once."""
    return [set(each["topic_partitions"]) for node in cluster.nodes for each in node.events("revoked", "lost")]


def _two_nodes_that_listen(cluster: Cluster) -> None:
    for _ in range(2):
        cluster.start_node()
    half = cluster.shards / 2
    # In sum all shards are served before the second one is a member as well.
    cluster.until(
        lambda: [node.metric("tidegate_serving_shards") for node in cluster.nodes] == [half, half], "both serve"
    )
    assert cluster.apply(_schedule(cluster))["status"] == "accepted"


def _assert_each_day_counted_once(cluster: Cluster) -> None:
    (run,) = cluster.until(lambda: cluster.runs("succeeded"), "the run of all days", NOTICED_S)
    assert sorted(run["outputs"]["days"]) == _days(0, DAYS)
    assert [node.metric("tidegate_actor_failures_total") for node in cluster.nodes] == [0] * len(cluster.nodes)


def test_given_a_topic_that_grows_under_its_readers_then_each_event_counts_once(cluster: Cluster) -> None:
    _two_nodes_that_listen(cluster)
    _produce(cluster, _days(0, 8), range(4))
    admin = _admin(cluster)
    admin.create_partitions([NewPartitions(_name(cluster), 6)])[_name(cluster)].result()
    cluster.until(lambda: _described(cluster, 6), "brokers tell of it")
    _produce(cluster, _days(8, 8), range(6))
    cluster.until(lambda: {4, 5} <= set(_told(cluster, "topic_read")), "the new ones are read", NOTICED_S)
    _produce(cluster, _days(16, 8), range(6))
    _assert_each_day_counted_once(cluster)
    assert _told(cluster, "topic_left") == []
    cluster.start_node()
    cluster.until(lambda: cluster.nodes[-1].ask("/readyz")[0] == 200, "one that comes later serves as well")


def test_given_a_topic_that_is_made_anew_under_its_readers_then_the_new_one_counts_whole(cluster: Cluster) -> None:
    _two_nodes_that_listen(cluster)
    _produce(cluster, _days(0, 8), range(4))
    old = _topic_id(cluster)
    cluster.until(lambda: _positions(cluster, old) == [2, 2, 2, 2], "all of the old one is read")
    before = len(_moves(cluster))
    admin = _admin(cluster)
    admin.delete_topics([_name(cluster)])[_name(cluster)].result()
    cluster.until(lambda: _is_made(cluster, old), "it is made again")
    _produce(cluster, _days(8, 16), range(4))  # More than lay in the old one: a client may read on at its offset.
    _assert_each_day_counted_once(cluster)
    assert _positions(cluster, old) == [2, 2, 2, 2]
    # Behind what it became.
    cluster.until(lambda: _positions(cluster, _topic_id(cluster)) == [4, 4, 4, 4], "all of the new one is read")
    # A holder that came meanwhile, on a machine too slow for the members' sessions, has read the new one alone.
    moves = _moves(cluster)
    moved = set[int]().union(*moves) if len(moves) > before else set()
    assert {*_told(cluster, "topic_left"), *moved} == {0, 1, 2, 3}
    nodes = cluster.nodes
    cluster.until(lambda: all(node.ask("/readyz")[0] == 200 for node in nodes), "nothing stands still any more")


def _is_made(cluster: Cluster, old: str | None) -> bool:
    """As an operator does it, with `tidegate init`; for some milliseconds the old one is being deleted still."""
    present = _topic_id(cluster)
    if present is None:
        with contextlib.suppress(NotYet, StartRefused):
            initialise(cluster.settings)
    return present not in {None, old}


def _described(cluster: Cluster, topic_partitions: int) -> Topic | None:
    """The topic as the brokers know it, once it has so many."""
    found = asyncio.run(TopicFacts(cluster.settings.kafka).describe([_name(cluster)]))
    assert not isinstance(found, Unavailable), found
    topic = found.get(_name(cluster))
    return topic if topic is not None and topic.topic_partitions == topic_partitions else None


def _topic_id(cluster: Cluster) -> str | None:
    topic = _described(cluster, 4)
    return None if topic is None else topic.id


def _positions(cluster: Cluster, topic_id: str | None) -> list[object]:
    assert topic_id is not None
    store = cluster.store()
    brokers = str(store.get([keys.MAP_KEY])[keys.MAP_KEY]["cluster_id"])
    wanted = [keys.topic_position(brokers, topic_id, number) for number in range(4)]
    found = store.get(wanted)
    return [found.get(key, {}).get("next") for key in wanted]
