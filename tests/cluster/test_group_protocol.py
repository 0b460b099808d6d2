"""Both nodes on KIP-848: a schedule fires, its node is killed, the other one takes over within the bound that nodes print."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster.cluster import SHARDS, Cluster
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.measurements import show
from tests.support.cluster.store_view import StoreView
from tests.support.cluster.until import now_ms, until
from tests.support.cluster.user_client import Client
from tests.support.machine_speed import slowness
from tests.support.servers.cluster_servers import ClusterServers
from tidegate_core.language.values.derived_ids import schedule_shard

NAMESPACE = "protocols"
PERIOD_MS = 2_000
SERVE_MS = 6_000
"""From being given topic partitions to a program's first line; times how slow the machine is."""


@pytest.fixture(scope="module")
def cluster(folder: Path, servers: ClusterServers) -> Iterator[Cluster]:
    with Cluster(folder, 2, servers, TIDEGATE_KAFKA__GROUP_PROTOCOL="consumer") as running:
        yield running


def test_given_kip_848_and_a_killed_node_then_its_schedule_goes_on_within_the_printed_bound(
    cluster: Cluster, client: Client, evidence: Evidence
) -> None:
    view = StoreView(cluster.store)
    node = cluster.nodes[0]
    (bound,) = node.events("take_over_bound")
    assert (bound["protocol"], bound["session_ms"], bound["said_by"]) == ("consumer", 6_000, "group")
    shards = {shard for number in view.held_by(_owner(cluster)) for shard in view.shards_of(number)}
    name = next(each for each in map(str, itertools.count()) if schedule_shard(NAMESPACE, each, SHARDS) in shards)
    spec = {
        "kind": "schedule",
        "namespace": NAMESPACE,
        "name": name,
        "target": evidence.target(),
        "trigger": {"type": "every", "period": f"{PERIOD_MS}ms"},
    }
    applied = client.request({"type": "schedule.apply", "namespace": NAMESPACE, "name": name, "spec": spec})
    assert applied["status"] == "accepted"
    until(lambda: len(evidence.runs()) >= 2, "it fires")

    node.kill()
    killed_at = now_ms()
    after = until(lambda: [run for run in evidence.runs() if run.started_at > killed_at], "it fires again")
    assert after[0].started_at - killed_at <= bound["take_over_ms"] + SERVE_MS * slowness()
    # Once the backlog is through, instants come in their time again; no instant is missing, none is there twice.
    on_time = until(
        lambda: [run for run in evidence.runs() if (run.nominal or 0) > after[-1].started_at], "it is up to date"
    )
    show(
        f"KIP-848: first fire {after[0].started_at - killed_at} ms after the kill, first fire on time "
        f"{on_time[0].started_at - killed_at} ms after it; nodes print a bound of {bound['take_over_ms']} ms"
    )

    nominals = sorted(run.nominal or 0 for run in evidence.runs())
    assert nominals == list(range(nominals[0], nominals[-1] + 1, PERIOD_MS))
    assert client.request({"type": "schedule.delete", "namespace": NAMESPACE, "name": name})["status"] == "accepted"


def _owner(cluster: Cluster) -> str:
    """The identity of the first node's present life."""
    return str(cluster.nodes[0].events("node_started")[-1]["owner"])
