"""Where a node that has fallen comes back."""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from pathlib import Path

from tests.unit.tidegate_cli.dev.conftest import RecordingConsole
from tidegate_bricks.free_ports import LOOPBACK, free_port
from tidegate_cli.dev.child_environment import Wiring
from tidegate_cli.dev.child_process import Child, ChildPlan
from tidegate_cli.dev.stack import NodePlans
from tidegate_cli.dev.stack_folder import StackFolder


def wiring(folder: Path, *node_ports: int) -> Wiring:
    return Wiring("127.0.0.1:1", "http://127.0.0.1:1", True, False, 1, node_ports, StackFolder(folder), {})


def test_given_a_free_port_then_a_node_keeps_it_at_each_start(tmp_path: Path, console: RecordingConsole) -> None:
    port = free_port()
    plans = NodePlans(wiring(tmp_path, port), console)
    for _ in range(2):
        assert plans.plan(1).ready_url == f"http://127.0.0.1:{port}/readyz"
    assert console.notices == []


def test_given_another_stack_took_a_fallen_nodes_port_then_it_comes_back_on_a_free_one_and_says_so(
    tmp_path: Path, console: RecordingConsole
) -> None:
    first = free_port()
    with socket.create_server((LOOPBACK, 0)) as others:
        taken = others.getsockname()[1]
        plans = NodePlans(wiring(tmp_path, first, taken), console)
        again = plans.plan(2)
    moved = plans.wiring.node_ports[1]
    assert plans.wiring.node_ports == (first, moved)
    assert moved not in (first, taken)
    assert again.environment["TIDEGATE_HEALTH__PORT"] == str(moved)
    assert again.ready_url == f"http://127.0.0.1:{moved}/readyz"
    assert console.notices == [f"node-2 port {taken} is now taken; node-2 uses {moved}"]


def test_given_a_child_then_each_start_asks_for_its_plan_anew(tmp_path: Path) -> None:
    first = ChildPlan("node-1", (sys.executable, "-c", "print('first')"), {}, tmp_path / "node.log")
    plans = [first, replace(first, command=(sys.executable, "-c", "print('second')"))]
    child = Child(first, lambda: plans.pop(0))
    for _ in range(2):
        child.start()
        assert child.wait(60) == 0
    child.close()
    assert (tmp_path / "node.log").read_text() == "first\nsecond\n"
