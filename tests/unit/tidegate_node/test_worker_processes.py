"""Real processes, with a few lines of Python in the node's place."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidegate_node.worker_processes import NOT_STARTED, Workers, environments_of

PATIENCE_S = 60.0
WAITS = "say('up'); os.read(0, 1); sys.exit({status})"
DRAINS = """
import asyncio, types
# What a node does is not imported: it takes each of these processes more than a second, and none of them has one.
sys.modules["tidegate_node.node"] = types.SimpleNamespace(Node=None)
from tidegate_node.process_lifecycle import stop_on_signals
async def life():
    stop = stop_on_signals(0); say(str(os.getpid()))
    await stop.wait(); say('drains')
    await asyncio.sleep({seconds}); say('drained')
asyncio.run(life())
"""
HEAD = """
import os, pathlib, signal, sys
here = pathlib.Path(os.environ["FOLDER"]); name = os.environ["TIDEGATE_NODE"]
def say(what):
    with (here / name).open("a") as file: file.write(what + "\\n")
lives = len((here / name).read_text().splitlines()) if (here / name).exists() else 0
"""


class Told:
    """Notices, as they came."""

    def __init__(self) -> None:
        self.all: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, **fields: Any) -> None:
        self.all.append((event, fields))


def said(folder: Path, node: str) -> list[str]:
    file = folder / node
    return file.read_text().splitlines() if file.exists() else []


def surroundings(folder: Path) -> dict[str, str]:
    return {**os.environ, "FOLDER": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}


def run_workers(folder: Path, body: str, told: Told, *moments: Callable[[], bool]) -> int:
    """Runs two workers with that body, sends this process SIGTERM at each of the moments, and returns the status."""
    environments = environments_of(2, "n", 0, surroundings(folder))
    command = (sys.executable, "-c", HEAD + body)

    async def life() -> int:
        running = asyncio.ensure_future(Workers(environments, told, command, pause_first_s=0.01).run())
        async with asyncio.timeout(PATIENCE_S):
            for has_come in moments:
                while not has_come():  # noqa: ASYNC110 - what is looked at are files of other processes
                    await asyncio.sleep(0.01)
                os.kill(os.getpid(), signal.SIGTERM)
            return await running

    return asyncio.run(life())


def pids(folder: Path) -> list[int]:
    """Of the workers that are up; for those that `DRAINS`."""
    return [int(words[0]) for node in ("n-1", "n-2") if (words := said(folder, node))]


def last_words(folder: Path, word: str) -> list[str]:
    """Who has said that word last."""
    return [node for node in ("n-1", "n-2") if said(folder, node)[-1:] == [word]]


def wait_until(has_come: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not has_come():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def both_said(folder: Path, *words: str) -> Callable[[], bool]:
    return lambda: said(folder, "n-1") == said(folder, "n-2") == list(words)


def test_given_two_workers_then_each_has_a_name_and_a_health_port_of_its_own() -> None:
    told = environments_of(2, "host", 8081, {"PATH": "x", "TIDEGATE_NODE": "host"})
    assert [(each["TIDEGATE_NODE"], each["TIDEGATE_HEALTH__PORT"], each["PATH"]) for each in told] == [
        ("host-1", "8081", "x"),
        ("host-2", "8082", "x"),
    ]
    assert {each["TIDEGATE_HEALTH__PORT"] for each in environments_of(3, "host", 0, {})} == {"0"}


def test_given_programs_that_go_with_their_host_then_no_worker_ends_them() -> None:
    """Read: each of several asked them to end, and the second SIGTERM cut off what a program does about the first one."""
    told = environments_of(2, "host", 8081, {"TIDEGATE_LAUNCHER__END_WAIT_S": "480"})
    assert {each["TIDEGATE_LAUNCHER__END_WAIT_S"] for each in told} == {"0"}


def test_given_a_signal_then_all_are_told_to_end_and_the_status_is_0(tmp_path: Path) -> None:
    told = Told()
    assert run_workers(tmp_path, WAITS.format(status=0), told, both_said(tmp_path, "up")) == 0
    assert told.all == []


def test_given_one_that_does_not_end_well_then_that_is_the_status(tmp_path: Path) -> None:
    assert (
        run_workers(tmp_path, WAITS.format(status="70 if name == 'n-2' else 0"), Told(), both_said(tmp_path, "up"))
        == 70
    )


def test_given_a_worker_that_dies_then_it_is_told_and_started_again_while_the_other_goes_on(tmp_path: Path) -> None:
    body = "if name == 'n-2' and lives < 2: say('up'); os.kill(os.getpid(), signal.SIGKILL)\n" + WAITS.format(status=0)
    told = Told()
    assert (
        run_workers(tmp_path, body, told, lambda: [*said(tmp_path, "n-1"), *said(tmp_path, "n-2")] == ["up"] * 4) == 0
    )
    assert told.all == [("worker_ended", {"worker": 2, "status": 128 + signal.SIGKILL})] * 2


def test_given_a_worker_that_the_system_does_not_start_then_it_is_tried_again_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: the supervisor ended for it, and the healthy worker lived on with nobody to end it."""
    start: Any = subprocess.Popen
    refusals = iter([OSError("no room"), OSError("no room")])

    def refuses_the_second(*command: Any, env: dict[str, str], **more: Any) -> Any:
        if env["TIDEGATE_NODE"] == "n-2" and (refusal := next(refusals, None)) is not None:
            raise refusal
        return start(*command, env=env, **more)

    monkeypatch.setattr(subprocess, "Popen", refuses_the_second)
    told = Told()
    assert run_workers(tmp_path, WAITS.format(status=0), told, both_said(tmp_path, "up")) == 0
    assert (
        told.all
        == [
            ("worker_not_started", {"worker": 2, "error": "no room"}),
            ("worker_ended", {"worker": 2, "status": NOT_STARTED}),
        ]
        * 2
    )


def test_given_a_host_without_threads_then_workers_are_looked_after_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asyncio waits for each process with a thread of its own: without one the command ended, and a worker ran on of which nobody knew."""

    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    told = Told()
    assert run_workers(tmp_path, WAITS.format(status=0), told, both_said(tmp_path, "up")) == 0
    assert told.all == []


def test_given_settings_that_cannot_be_then_all_end_and_none_is_started_again(tmp_path: Path) -> None:
    body = "if name == 'n-2': sys.exit(78)\n" + WAITS.format(status=0)
    told = Told()
    assert run_workers(tmp_path, body, told) == 78
    assert told.all == [("worker_ended", {"worker": 2, "status": 78})]


def test_given_a_second_signal_then_it_reaches_them_as_well(tmp_path: Path) -> None:
    """A node that drains ends at once with it."""
    moments = (lambda: len(pids(tmp_path)) == 2, lambda: len(last_words(tmp_path, "drains")) == 2)
    assert run_workers(tmp_path, DRAINS.format(seconds=PATIENCE_S), Told(), *moments) == 143
    assert last_words(tmp_path, "drains") == ["n-1", "n-2"]


@pytest.mark.parametrize("workers_first", [True, False])
def test_given_a_service_manager_that_signals_each_process_then_the_workers_drain(
    tmp_path: Path, workers_first: bool
) -> None:
    """Found in review: they took the manager's signal and the one that was passed on for two orders, and ended at once."""

    async def life() -> int:
        environments = environments_of(2, "n", 0, surroundings(tmp_path))
        command = (sys.executable, "-c", HEAD + DRAINS.format(seconds=1))
        running = asyncio.ensure_future(Workers(environments, Told(), command).run())
        async with asyncio.timeout(PATIENCE_S):
            while len(pids(tmp_path)) < 2:  # noqa: ASYNC110 - what is looked at are files of other processes
                await asyncio.sleep(0.01)
            told = [*pids(tmp_path), os.getpid()]
            for pid in told if workers_first else reversed(told):
                os.kill(pid, signal.SIGTERM)
            return await running

    assert asyncio.run(life()) == 0
    assert last_words(tmp_path, "drained") == ["n-1", "n-2"]


def test_given_who_looks_after_them_is_killed_then_the_workers_drain(tmp_path: Path) -> None:
    body = (
        "from tidegate_node.worker_processes import Workers, environments_of\n"
        f"command = (sys.executable, '-c', {HEAD + DRAINS.format(seconds=0.1)!r})\n"
        "asyncio.run(Workers(environments_of(2, 'n', 0, os.environ), print, command).run())\n"
    )
    supervisor = subprocess.Popen(
        [sys.executable, "-c", "import asyncio, os, sys\n" + body], env=surroundings(tmp_path)
    )
    wait_until(lambda: len(pids(tmp_path)) == 2)
    supervisor.kill()
    supervisor.wait()
    wait_until(lambda: len(last_words(tmp_path, "drained")) == 2)
    assert last_words(tmp_path, "drained") == ["n-1", "n-2"]
