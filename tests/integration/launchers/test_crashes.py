"""What is left when a node or a supervisor is killed at a bad moment, and how the next node settles it."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.launcher import Absent, Ended, Found, Launch, LaunchUnavailable

ALaunch = Callable[..., Launch]
STILL_THERE_S = 0.3

NODE = """
import asyncio, json, sys
from pathlib import Path
from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.launcher import Launch

async def main():
    told = json.loads(sys.stdin.readline())
    settings = LocalSettings(data_dir=Path(told.pop("data_dir")), host="node-1", submit_timeout_s=90, poll_interval_s=0.02)
    launcher = LocalLauncher(settings)
    launch = Launch(**told)
    print((await launcher.submit(launch)).external_id, flush=True)
    await launcher.wait_until_gone(launch.run_id, launch.attempt)

asyncio.run(main())
"""


class Gate(Protocol):
    status: int

    def of(self, action: str) -> list[Mapping[str, object]]: ...
    def wait_for(self, action: str) -> Mapping[str, object]: ...


class Latch(Protocol):
    @property
    def wait_statement(self) -> str: ...
    def release(self) -> None: ...


@pytest.fixture
def a_node(settings: LocalSettings) -> Callable[[Launch], subprocess.Popen[str]]:
    """Starts another process that submits the launch and waits for it, as a node does."""

    def start(launch: Launch) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", NODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,
        )
        fields = {name: getattr(launch, name) for name in launch.__slots__} | {"data_dir": str(settings.data_dir)}
        assert process.stdin is not None
        process.stdin.write(f"{json.dumps(fields)}\n")
        process.stdin.flush()
        return process

    return start


def output_of(launcher: LocalLauncher, launch: Launch) -> str:
    return Path(launcher.log_paths(launch.run_id, 1).stdout).read_text(encoding="utf-8")


def run_supervisor(folder: RunFolder, plan: str, *script: str) -> subprocess.CompletedProcess[str]:
    """Starts a supervisor as the launcher does, with a plan of the test's own; or a script that stands in for it."""
    module = ("-P", "-S", "-m", "tidegate_launchers.local.program_supervisor", str(folder.path))
    return subprocess.run(
        [sys.executable, *(script or module)],
        input=plan,
        text=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    )


async def test_given_the_node_and_its_group_are_killed_then_the_program_goes_on_and_the_next_node_adopts_it(
    settings: LocalSettings,
    a_launch: ALaunch,
    a_node: Callable[[Launch], subprocess.Popen[str]],
    gate: Gate,
    latch: Latch,
) -> None:
    launch = a_launch(f"{latch.wait_statement}\nprint('went on')")
    with a_node(launch) as node:
        assert node.stdout is not None
        external_id = node.stdout.readline().strip()
        os.killpg(node.pid, signal.SIGKILL)
        assert node.wait(timeout=30) == -signal.SIGKILL
    successor = LocalLauncher(settings)
    found = await successor.lookup(launch.run_id, 1, "node-1", None)
    assert isinstance(found, Found)
    assert found.placement.external_id == external_id
    assert (await successor.submit(launch)).external_id == external_id
    waiting = asyncio.create_task(successor.wait_until_gone(launch.run_id, 1))
    done, _ = await asyncio.wait({waiting}, timeout=STILL_THERE_S)
    assert not done
    await asyncio.to_thread(latch.release)
    assert await waiting == Ended(0)
    assert output_of(successor, launch) == "went on\n"
    assert (len(gate.of("start")), [body["outcome"] for body in gate.of("finished")]) == (1, ["succeeded"])


async def test_given_the_node_is_killed_then_the_next_one_can_cancel_what_it_left(
    settings: LocalSettings,
    a_launch: ALaunch,
    a_node: Callable[[Launch], subprocess.Popen[str]],
    gate: Gate,
) -> None:
    launch = a_launch("import signal; from tidegate_spark import set_output; set_output('up', 1); signal.pause()")
    with a_node(launch) as node:
        await asyncio.to_thread(gate.wait_for, "outputs")
        node.kill()
    successor = LocalLauncher(replace(settings, cancel_grace_s=60))
    end = await successor.cancel(launch.run_id, 1)
    assert isinstance(end, Ended)
    assert end.exit_code == 143


async def test_given_only_the_supervisor_is_killed_then_the_program_goes_on_and_its_end_is_noticed(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, latch: Latch
) -> None:
    launch = a_launch(f"{latch.wait_statement}\nprint('went on')")
    await launcher.submit(launch)
    record = RunFolder.within(settings.data_dir, launch.run_id, 1).record()
    assert record is not None
    os.kill(record.supervisor_pid, signal.SIGKILL)
    waiting = asyncio.create_task(launcher.wait_until_gone(launch.run_id, 1))
    done, _ = await asyncio.wait({waiting}, timeout=STILL_THERE_S)
    assert not done
    await asyncio.to_thread(latch.release)
    end = await waiting
    assert (end.exit_code, end.error_class) == (None, "transient")
    assert output_of(launcher, launch) == "went on\n"


async def test_given_program_and_supervisor_are_killed_then_the_attempt_is_never_started_again(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, gate: Gate
) -> None:
    launch = a_launch("import signal; from tidegate_spark import set_output; set_output('up', 1); signal.pause()")
    submission = await launcher.submit(launch)
    await asyncio.to_thread(gate.wait_for, "outputs")
    record = RunFolder.within(settings.data_dir, launch.run_id, 1).record()
    assert record is not None
    for pid in (record.supervisor_pid, record.pid):
        os.kill(pid, signal.SIGKILL)
    end = await launcher.wait_until_gone(launch.run_id, 1)
    assert (end.exit_code, end.error_class) == (None, "transient")
    assert await launcher.submit(launch) == submission
    assert len(gate.of("start")) == 1


async def test_given_program_and_supervisor_are_killed_before_the_gate_then_another_attempt_may_be_made(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, gate: Gate
) -> None:
    """What a container's end, or its kernel for want of memory, does while a program waits for the API."""
    gate.status = 503
    launch = a_launch("print('never')")
    await launcher.submit(launch)
    await asyncio.to_thread(gate.wait_for, "start")
    record = RunFolder.within(settings.data_dir, launch.run_id, 1).record()
    assert record is not None
    for pid in (record.supervisor_pid, record.pid):
        os.kill(pid, signal.SIGKILL)
    end = await launcher.wait_until_gone(launch.run_id, 1)
    assert (end.exit_code, end.error_class) == (None, "transient")
    assert "its end was not seen" in end.reason


async def test_given_the_node_dies_while_it_tells_the_plan_then_nothing_started_and_a_submit_does(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, gate: Gate
) -> None:
    launch = a_launch("print('ran')")
    folder = RunFolder.within(settings.data_dir, launch.run_id, 1)
    folder.make()
    half = run_supervisor(folder, '{"command": ["/bin/touch", "/tmp/')
    assert (half.returncode, half.stdout) == (78, "")
    assert await launcher.lookup(launch.run_id, 1, None, None) == Absent()
    await launcher.submit(launch)
    assert await launcher.wait_until_gone(launch.run_id, 1) == Ended(0)
    assert len(gate.of("start")) == 1


CRASH_BEFORE_THE_RECORD = """
import os, sys
from pathlib import Path
from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.program_supervisor import Plan, supervise

RunFolder.write_record = lambda *_: os._exit(9)
os.dup(1)
supervise(RunFolder(Path(sys.argv[1])), Plan(["/bin/touch", sys.argv[2]], {}, "node-1"))
"""


async def test_given_the_supervisor_dies_between_fork_and_record_then_the_held_program_never_runs(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, gate: Gate, tmp_path: Path
) -> None:
    launch = a_launch("print('ran')")
    folder = RunFolder.within(settings.data_dir, launch.run_id, 1)
    folder.make()
    trace = tmp_path / "it ran"
    crashed = run_supervisor(folder, "", "-c", CRASH_BEFORE_THE_RECORD, str(folder.path), str(trace))
    # Its stdout was read to the end, and the held process has that pipe, too, until it is gone.
    assert crashed.returncode == 9
    assert not trace.exists()
    assert await launcher.lookup(launch.run_id, 1, None, None) == Absent()
    await launcher.submit(launch)
    assert await launcher.wait_until_gone(launch.run_id, 1) == Ended(0)
    assert len(gate.of("start")) == 1


CANCEL_DURING_THE_START = """
import sys
from pathlib import Path
from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.program_supervisor import Plan, supervise

write_record = RunFolder.write_record
RunFolder.write_record = lambda folder, record: (folder.write_cancel(1), write_record(folder, record))
supervise(RunFolder(Path(sys.argv[1])), Plan(["/bin/touch", sys.argv[2]], {}, "node-1"))
"""


async def test_given_a_cancel_while_the_supervisor_starts_then_the_program_does_not(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, tmp_path: Path
) -> None:
    """The canceller found no record, and so nothing to kill: the supervisor must see the request."""
    launch = a_launch("print('never')")
    folder = RunFolder.within(settings.data_dir, launch.run_id, 1)
    folder.make()
    trace = tmp_path / "it ran"
    assert run_supervisor(folder, "", "-c", CANCEL_DURING_THE_START, str(folder.path), str(trace)).returncode == 0
    assert (await launcher.wait_until_gone(launch.run_id, 1)).exit_code == 78
    assert not trace.exists()


async def test_given_an_attempt_that_ended_then_a_late_supervisor_starts_nothing(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, tmp_path: Path
) -> None:
    """A node that was asleep between its look at the folder and its supervisor's start."""
    launch = a_launch("print('once')")
    await launcher.submit(launch)
    await launcher.wait_until_gone(launch.run_id, 1)
    trace = tmp_path / "it ran"
    plan = {"command": ["/bin/touch", str(trace)], "environment": {}, "host": "node-1"}
    assert run_supervisor(RunFolder.within(settings.data_dir, launch.run_id, 1), json.dumps(plan)).stdout == "busy\n"
    assert not trace.exists()


async def test_given_another_supervisor_has_the_lock_and_no_record_yet_then_a_second_one_starts_nothing(
    settings: LocalSettings, a_launch: ALaunch, gate: Gate
) -> None:
    """The moment between lock and record, held still: only the lock keeps the second supervisor out."""
    launch = a_launch("print('ran')")
    folder = RunFolder.within(settings.data_dir, launch.run_id, 1)
    folder.make()
    with folder.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        launcher = await refused_by_the_lock(settings, launch)
        assert await launcher.lookup(launch.run_id, 1, None, None) == Absent()
    await LocalLauncher(settings).submit(launch)
    assert await launcher.wait_until_gone(launch.run_id, 1) == Ended(0)
    assert len(gate.of("start")) == 1


async def refused_by_the_lock(settings: LocalSettings, launch: Launch) -> LocalLauncher:
    """Returns the launcher whose submit was. All of its patience is used up, in which a busy machine may not even bring a supervisor up."""
    said = []
    for patience_s in (2, 10, 30):
        launcher = LocalLauncher(replace(settings, submit_timeout_s=patience_s))
        with pytest.raises(LaunchUnavailable) as refusal:
            await launcher.submit(launch)
        if "another supervisor holds it and did not start; submit it again" in str(refusal.value):
            return launcher
        said.append(str(refusal.value))
        if "its supervisor did not start" not in said[-1]:
            break
    pytest.fail(f"refused for another reason: {said}")
