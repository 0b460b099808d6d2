"""`tidegate migrate` beside nodes that serve, on real bricks: from a store of before to the newest version, without a restart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.keys import SCHEMA_KEY
from tidegate_core.rows.node_status import NodeStatus
from tidegate_core.rows.schema_version import FIRST, NEWEST, StoreSchema
from tidegate_core.rows.shared_limit import QueueEntry
from tidegate_core.rows.store_operations import Delete, Put
from tidegate_node.startup_checks import EXIT_CONFIGURATION

if TYPE_CHECKING:
    from tests.integration.node.conftest import Cluster

ROWS = 60
SOME = 3
WAIT_S = 120.0
"""A node looks every 5 s; the machine may be busy."""
OLDER = "0ld0ld0l-0000-4000-8000-000000000000"


def _migrate(cluster: Cluster, *options: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **cluster.environment}
    command = [sys.executable, "-m", "tidegate_cli.main", "migrate", *options]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _told(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, said = process.communicate(timeout=2 * WAIT_S)
    return process.returncode, out + said


def _schema(cluster: Cluster) -> StoreSchema:
    return StoreSchema.of(cluster.store().get([SCHEMA_KEY]).get(SCHEMA_KEY))


def _waiters(cluster: Cluster) -> list[QueueEntry]:
    """Rows as an older release wrote them, of a limit that lets nobody pass: their home offers them nothing meanwhile."""
    limit = keys.shared_limit("tests", "group", "of-before")
    return [
        QueueEntry(limit=limit.pk, job_id=f"0003-{number:026d}", satisfied_at=number, most=0, asked_at=number)
        for number in range(ROWS)
    ]


def _as_before(cluster: Cluster) -> None:
    rows = [Put(row.key(3), {**to_item(row, row.key(3)), "rev": 1, "w": "older"}) for row in _waiters(cluster)]
    assert cluster.store().write([Delete(SCHEMA_KEY), *rows]) == []


def _orders(cluster: Cluster) -> list[object]:
    items = cluster.store().get([row.key(3) for row in _waiters(cluster)])
    return [item["order"] for item in items.values() if "order" in item]


def test_given_a_store_of_before_then_nodes_serve_on_it_and_migrate_beside_them_comes_to_the_newest_version(
    cluster: Cluster,
) -> None:
    _as_before(cluster)
    node = cluster.start_node()
    node.until_serving(cluster.shards)

    # Killed in the middle of the rows, and run again; so slow that many of them are left however late the look comes.
    killed = _migrate(cluster, "--writes-per-s", "3")
    cluster.until(lambda: len(_orders(cluster)) >= SOME, "some rows are moved")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert len(_orders(cluster)) < ROWS
    assert _schema(cluster).writes == FIRST
    assert _told(_migrate(cluster, "--writes-per-s", "500"))[0] == 0
    assert sorted(map(str, _orders(cluster))) == sorted(str(number) for number in range(ROWS))

    # A process of the older release: its card does not say what it reads.
    card = NodeStatus(owner=OLDER, node="older", version="0.0.9", tzdata="", started_at=0, seen=int(time.time() * 1000))
    cluster.store().write([Put(keys.node_status(OLDER), to_item(card, keys.node_status(OLDER)))])
    code, said = _told(_migrate(cluster, "--finish", "--writes-per-s", "500"))
    assert (code, "node older" in said) == (1, True), said
    assert _schema(cluster).writes == FIRST
    cluster.store().write([Delete(keys.node_status(OLDER))])

    code, said = _told(_migrate(cluster, "--finish", "--writes-per-s", "500"))
    assert code == 0, said
    assert _schema(cluster) == StoreSchema(writes=NEWEST, rows_from=NEWEST)
    assert node.process.poll() is None, "it follows without a restart"
    node.until_serving(cluster.shards)
    assert node.end(signal.SIGTERM) == 0


def test_given_a_store_that_is_newer_then_a_node_that_serves_ends_and_none_starts(cluster: Cluster) -> None:
    node = cluster.start_node()
    node.until_serving(cluster.shards)
    newer = StoreSchema(writes=NEWEST + 1, rows_from=NEWEST)
    cluster.store().write([Put(SCHEMA_KEY, {**to_item(newer, SCHEMA_KEY), "rev": 9})])
    assert node.process.wait(WAIT_S) == EXIT_CONFIGURATION, "it ends by itself"
    assert len(node.events("node_outdated")) == 1

    late = cluster.start_node()
    assert late.process.wait(WAIT_S) == EXIT_CONFIGURATION
    assert "run the newer release" in late.events("node_refused")[0]["message"]
