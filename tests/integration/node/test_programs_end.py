"""A node that goes with its host, as a pod does: it hands its shards over at once, and waits for its programs."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidegate_core.language.values.instants import format_instant

if TYPE_CHECKING:
    from tests.integration.node.conftest import Cluster, NodeProcess

WAITS = "open({begun!r}, 'w').close()\nopen({latch!r}).read()\n"


@pytest.fixture
def latch(tmp_path: Path) -> Path:
    """A program waits until somebody writes there."""
    path = tmp_path / "latch"
    os.mkfifo(path)
    return path


def _begun(latch: Path) -> Path:
    return latch.with_name("begun")


def _pod(cluster: Cluster, host: str, **settings: str) -> NodeProcess:
    """A node with a folder of its own, so that no other one sees its programs."""
    folder = cluster.folder / host
    return cluster.start_node(TIDEGATE_LAUNCHER__HOST=host, TIDEGATE_DATA_DIR=str(folder), **settings)


def _once(cluster: Cluster, latch: Path) -> dict[str, Any]:
    program = cluster.program(WAITS.format(latch=str(latch), begun=str(_begun(latch))))
    return {
        "namespace": "tests",
        "name": "long",
        "target": {"type": "program", "program": {"type": "python", "file": str(program)}},
        "trigger": {"type": "at", "instant": format_instant(time.time_ns() // 1_000_000)},
    }


def _pod_with_a_program(cluster: Cluster, latch: Path, end_wait_s: str) -> NodeProcess:
    pod = _pod(cluster, "pod-1", TIDEGATE_LAUNCHER__END_WAIT_S=end_wait_s)
    pod.until_serving(cluster.shards)
    assert cluster.apply(_once(cluster, latch))["status"] == "accepted"
    cluster.until(_begun(latch).exists, "the program runs")
    return pod


def test_given_a_program_that_goes_on_when_its_pod_is_told_to_end_then_the_pod_waits_and_the_run_succeeds(
    cluster: Cluster, latch: Path
) -> None:
    """Read: the container went with the node, the program with the container, and its run was `lost`."""
    first = _pod_with_a_program(cluster, latch, end_wait_s="300")
    second = _pod(cluster, "pod-2")

    first.process.send_signal(signal.SIGTERM)
    cluster.until(lambda: first.events("programs_awaited"), "it waits")
    second.until_serving(cluster.shards)
    assert first.process.poll() is None
    latch.open("w").close()

    assert first.process.wait(120) == 0
    assert not first.events("programs_told_to_end")
    cluster.until(lambda: cluster.runs("succeeded"), "the other node records its end")


def test_given_a_program_that_goes_on_for_too_long_then_it_is_asked_to_end_and_its_run_fails(
    cluster: Cluster, latch: Path
) -> None:
    first = _pod_with_a_program(cluster, latch, end_wait_s="0.5")
    _pod(cluster, "pod-2")

    assert first.end(signal.SIGTERM) == 0
    assert first.events("programs_told_to_end")
    assert not first.events("programs_left")
    (run,) = cluster.until(lambda: cluster.runs("failed"), "the other node records its end")
    assert run["reason"] == "terminated"


def test_given_several_workers_then_who_looks_after_them_waits_for_their_programs(
    cluster: Cluster, latch: Path
) -> None:
    cluster.environment["TIDEGATE_LAUNCHER__END_WAIT_S"] = "300"
    workers = cluster.start_workers(2)
    cluster.until(lambda: len({event["node"] for event in workers.events("serving")}) == 2, "both serve")
    assert cluster.apply(_once(cluster, latch))["status"] == "accepted"
    cluster.until(_begun(latch).exists, "the program runs")

    workers.process.send_signal(signal.SIGTERM)
    cluster.until(lambda: workers.events("programs_awaited"), "it waits")
    assert len(workers.events("node_stopped")) == 2
    assert workers.process.poll() is None
    latch.open("w").close()

    assert workers.process.wait(120) == 0
    assert len(workers.events("programs_awaited")) == 1
