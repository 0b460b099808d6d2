"""A sample of CDAP's stories and scenarios on a real node, for each kind of trigger; all of them on a virtual clock are unit tests."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

if TYPE_CHECKING:
    from tests.integration.node.conftest import Cluster

QUIET = "3s"
"""In which nothing begins that must not."""


def _schedule(cluster: Cluster, name: str, trigger: dict[str, Any], **more: Any) -> None:
    target = {"type": "program", "program": {"type": "python", "file": str(cluster.program("pass\n"))}}
    spec = {"namespace": "tests", "name": name, "target": target, "trigger": trigger, **more}
    receipt = cluster.apply(spec)
    assert receipt["status"] == "accepted", receipt


def _events(cluster: Cluster, dataset: str, *data_partitions: str) -> None:
    """Announces them at once: between two of one client's life a busy machine may take seconds."""
    producer = Producer({"bootstrap.servers": cluster.settings.kafka.bootstrap_servers, "linger.ms": 500})
    for data_partition in data_partitions:
        event = {"type": "data.partition", "namespace": "tests", "dataset": dataset, "partition": data_partition}
        producer.produce(cluster.settings.kafka.topic("events"), json.dumps(event).encode(), dataset)
    assert producer.flush(60) == 0


def _ran(cluster: Cluster, name: str) -> int:
    return len(cluster.runs("succeeded", name))


def _until_quiet(cluster: Cluster, name: str) -> None:
    """Waits for the run of a schedule that waits for `QUIET` itself: whatever was due before has begun by then."""
    _schedule(cluster, name, {"type": "data_partitions", "dataset": name, "settle": QUIET})
    _events(cluster, name, "d1")
    cluster.until(lambda: _ran(cluster, name), f"a run of {name}")


def test_given_stories_of_data_programs_and_composites_then_each_runs_once_on_a_real_node(serving: Cluster) -> None:
    """US-03: data starts a program within seconds. US-04: a success starts the next one. US-08: a join runs with what is there
    after its wait. US-09: chunks become one run after a quiet period.
    """
    _schedule(serving, "a", {"type": "data_partitions", "dataset": "raw", "count": 2})
    _schedule(serving, "b", {"type": "run_status", "schedule": "a"})
    leaves = [{"type": "data_partitions", "dataset": name} for name in ("raw", "weather")]
    join = {"type": "all_of", "triggers": leaves, "timeout": "2s", "on_timeout": "partial"}
    _schedule(serving, "join", join)
    _schedule(serving, "chunks", {"type": "data_partitions", "dataset": "raw", "settle": "2s"})

    _events(serving, "raw", "d1", "d2")

    for name in ("a", "b", "join", "chunks"):
        serving.until(partial(_ran, serving, name), f"a run of {name}")
    _until_quiet(serving, "quiet")
    assert [_ran(serving, name) for name in ("a", "b", "join", "chunks")] == [1] * 4


def test_given_a_schedule_that_is_deleted_with_half_of_its_data_then_it_never_runs_and_counts_anew(
    serving: Cluster,
) -> None:
    """TS-04, TS-06: four of five, a delete, one more; made again it counts from zero."""
    five = {"type": "data_partitions", "dataset": "halved", "count": 5}
    _schedule(serving, "five", five)
    _events(serving, "halved", *(f"d{number}" for number in range(4)))
    delete = {"id": "delete", "type": "schedule.delete", "namespace": "tests", "name": "five"}
    serving.send("requests", delete)
    assert serving.receipt("delete")["status"] == "accepted"
    _schedule(serving, "five", five)
    _events(serving, "halved", "d4")
    _until_quiet(serving, "quiet-again")
    assert _ran(serving, "five") == 0
    _events(serving, "halved", *(f"d{number}" for number in range(5, 9)))
    serving.until(lambda: _ran(serving, "five"), "a run of what was made again")
