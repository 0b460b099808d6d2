"""What is not of this launcher: other hosts, other stacks, other boots and other processes are left alone."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.launchers.local_runs import ALaunch, Gate, Latch, cancelled, ended, folder_of
from tidegate_launchers.local.attempt import Watch
from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.process_table import boot_id, facts_of
from tidegate_launchers.local.run_folder import Record
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.launcher import Absent, Elsewhere, Ended, Found, LaunchUnavailable


async def test_given_two_stacks_with_the_same_run_id_then_cancel_ends_only_its_own(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, gate: Gate, latch: Latch, tmp_path: Path
) -> None:
    other_stack = LocalLauncher(replace(settings, data_dir=tmp_path / "other"))
    launch = a_launch(latch.wait_statement)
    await launcher.submit(launch)
    await other_stack.submit(launch)
    assert (await cancelled(launcher, launch)).error_class == "transient"
    await asyncio.to_thread(latch.release)
    assert await ended(other_stack, launch) == Ended(0)


async def test_given_a_data_folder_of_several_hosts_then_a_program_of_another_one_is_left_alone(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, latch: Latch
) -> None:
    """Its processes cannot be seen from here: neither gone nor ended would be true."""
    other_host = LocalLauncher(replace(settings, host="node-2"))
    launch = a_launch(latch.wait_statement)
    submission = await other_host.submit(launch)
    assert await launcher.submit(launch) == submission
    assert await launcher.cancel(launch.run_id, 1) == Elsewhere("node-2")
    assert folder_of(settings, launch).cancelled_at() is None
    with pytest.raises(LaunchUnavailable, match="was started on node-2"):
        await ended(launcher, launch)
    await asyncio.to_thread(latch.release)
    assert await ended(other_host, launch) == Ended(0)


async def test_given_copies_on_two_hosts_then_the_one_that_the_gate_refuses_says_nothing_of_the_other(
    settings: LocalSettings, a_launch: ALaunch, gate: Gate, latch: Latch, tmp_path: Path
) -> None:
    """Two nodes without a common data folder both submit: the gap between fence and submit cannot be closed."""
    first, second = (
        LocalLauncher(replace(settings, host=host, data_dir=tmp_path / host)) for host in ("node-1", "node-2")
    )
    launch = a_launch(latch.wait_statement)
    await first.submit(launch)
    await asyncio.to_thread(gate.wait_for, "start")
    gate.status = 409
    await second.submit(launch)
    end = await ended(second, launch)
    assert (end.exit_code, end.error_class) == (79, "duplicate")
    assert end.reason.startswith("duplicate, not run: ")
    gate.status = 200
    await asyncio.to_thread(latch.release)
    assert await ended(first, launch) == Ended(0)


async def test_given_nodes_of_one_host_without_a_common_folder_then_a_program_that_lives_is_not_called_gone(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, gate: Gate, latch: Latch, tmp_path: Path
) -> None:
    """Found in review: what had no record here was over for its next owner, which gave its permits back and tried it again beside itself."""
    other_node = LocalLauncher(replace(settings, data_dir=tmp_path / "other"))
    launch = a_launch(latch.wait_statement)
    await launcher.submit(launch)
    await asyncio.to_thread(gate.wait_for, "start")
    with pytest.raises(LaunchUnavailable, match="one data_dir"):
        await other_node.lookup(launch.run_id, 1, "node-1", boot_id())
    await asyncio.to_thread(latch.release)
    assert await ended(launcher, launch) == Ended(0)
    assert await other_node.lookup(launch.run_id, 1, "node-1", boot_id()) == Absent()


async def test_given_somebody_removes_the_folder_of_a_program_that_lives_then_it_is_not_called_gone(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, gate: Gate, latch: Latch
) -> None:
    launch = a_launch(latch.wait_statement)
    await launcher.submit(launch)
    await asyncio.to_thread(gate.wait_for, "start")
    watching = asyncio.ensure_future(ended(launcher, launch))
    folder = folder_of(settings, launch)
    shutil.rmtree(settings.data_dir)
    assert Watch(folder, boot_id()).presence() == "alive"
    with pytest.raises(LaunchUnavailable, match="one data_dir"):
        await launcher.lookup(launch.run_id, 1, "node-1", boot_id())
    assert not watching.done()
    await asyncio.to_thread(latch.release)
    assert (await watching).exit_code is None
    assert Watch(folder, boot_id()).presence() == "gone"


@pytest.fixture
def innocent() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with any run."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process
        process.kill()


async def test_given_the_pid_belongs_to_another_process_then_the_run_is_gone_and_that_one_is_left_alone(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, innocent: subprocess.Popen[bytes]
) -> None:
    launch = a_launch("print('never')")
    folder = folder_of(settings, launch)
    folder.make()
    folder.write_record(Record(innocent.pid, "1", innocent.pid, "1", "node-1", boot_id()))
    assert (await ended(launcher, launch)).error_class == "transient"
    assert (await cancelled(launcher, launch)).error_class == "transient"
    assert innocent.poll() is None
    innocent.communicate(b"\n", timeout=60)
    assert innocent.returncode == 0


async def test_given_another_boot_then_the_run_is_found_and_gone(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch
) -> None:
    launch = a_launch("print('never')")
    folder = folder_of(settings, launch)
    folder.make()
    own = facts_of(os.getpid())
    assert own is not None
    folder.write_record(Record(own.pid, own.started, own.pid, own.started, "node-1", "an earlier boot"))
    assert isinstance(await launcher.lookup(launch.run_id, 1, "node-1", "an earlier boot"), Found)
    assert (await ended(launcher, launch)).error_class == "transient"
