"""Two nodes of a real cluster as an operator sees them: drained, stopped, and one of them frozen."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.integration.api.conftest import SHARDS, until
from tests.support.machine_speed import slowness

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stack
    from tidegate_client import Client
    from tidegate_client.views import ShardDetail

TOLD_WITHIN_S = 60
"""Times how slow the machine is."""
HALVES = {"one": SHARDS // 2, "two": SHARDS // 2}


def states(client: Client) -> dict[str, str]:
    return {node.name: node.state for node in client.nodes()}


def shares(client: Client) -> dict[str | None, int]:
    """How many shards each node has, at one look: between two of them a shard may move."""
    return dict(Counter(shard.node for shard in client.shards()))


def times_said(stack: Stack, process: subprocess.Popen[bytes], event: str) -> int:
    return stack.log_of(process).count(f'"event": "{event}"')


def left(shard: ShardDetail) -> tuple[int | None, ...]:
    return shard.requests_behind, shard.inbox, shard.jobs, shard.backlog


@contextmanager
def frozen(process: subprocess.Popen[bytes]) -> Iterator[None]:
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def test_given_two_nodes_then_an_operator_sees_drains_stops_and_is_told_of_a_frozen_one(
    stack: Stack, client: Client
) -> None:
    one, two = (stack.start("node", TIDEGATE_NODE=name, TIDEGATE_HEALTH__PORT="0") for name in ("one", "two"))
    until(lambda: states(client) == {"one": "ready", "two": "ready"}, "both are ready")
    until(lambda: shares(client) == HALVES, "each has its half")
    assert len(client.shards("one")) + len(client.shards("two")) == SHARDS

    cut_before = times_said(stack, one, "drain_cut")
    drained = stack.command("node", "drain", "one", "--reason", "new disk", "-o", "json")
    assert drained.returncode == 0, drained.stderr
    assert (json.loads(drained.stdout)["state"], json.loads(drained.stdout)["shards"]) == ("drained", 0)
    until(lambda: shares(client) == {"two": SHARDS}, "the other one has taken over")
    assert times_said(stack, one, "drained")
    assert times_said(stack, one, "drain_cut") == cut_before, "a hand-over in order, not one that was cut"
    assert stack.command("node", "drain", "two").returncode == 4, "nobody would be left"
    assert stack.command("node", "drain", "one", "--undo").returncode == 0
    until(lambda: shares(client) == HALVES, "it takes its share again")

    stopped = stack.command("node", "stop-firing", "--reason", "a drill")
    assert stopped.returncode == 0, stopped.stderr
    assert all(shard.stopped and not shard.controls_behind for shard in client.shards())
    assert stack.command("node", "start-firing").returncode == 0
    assert not any(shard.stopped for shard in client.shards())
    until(lambda: states(client) == {"one": "ready", "two": "ready"}, "both are ready")
    assert [each for shard in client.shards() for each in shard.broken] == []
    until(lambda: left(client.shard(0)) == (0, 0, 0, 0), "nothing is left to be done")

    told_before = times_said(stack, two, "node_silent")
    with frozen(one):
        began = time.monotonic()
        until(lambda: times_said(stack, two, "node_silent") > told_before, "the other one tells")
        assert time.monotonic() - began < TOLD_WITHIN_S * slowness()
        assert states(client)["one"] == "silent"
        assert stack.command("node", "drain", "one").returncode == 4, "it hears nothing"
    until(lambda: states(client) == {"one": "ready", "two": "ready"}, "it is back")
    one.terminate()
    until(lambda: states(client) == {"two": "ready"}, "who ends well is not missed")
