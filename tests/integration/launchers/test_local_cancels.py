"""Cancels of real programs: nothing of them is left, whatever they do with the signal, and what never started never will."""

from __future__ import annotations

import asyncio
import errno
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.launchers.local_runs import (
    STUBBORN,
    ALaunch,
    Gate,
    Latch,
    cancelled,
    folder_of,
    output_of,
    reported_pids,
)
from tests.support.machine_speed import slowness
from tidegate_launchers.local.attempt import Watch
from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.process_table import facts_of
from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.launcher import Absent, LaunchRejected, LaunchUnavailable

ENDS_S_MAX = 30.0
"""Half of the grace, after which it would be killed; times how slow the machine is."""


async def test_given_a_program_that_ignores_sigterm_and_has_children_then_cancel_leaves_nothing(
    launcher: LocalLauncher, a_launch: ALaunch, gate: Gate
) -> None:
    launch = a_launch(STUBBORN)
    await launcher.submit(launch)
    pids = await reported_pids(gate, 3)
    end = await cancelled(launcher, launch)
    assert end.signal == 9
    assert [facts_of(pid) for pid in pids] == [None, None, None]


async def test_given_a_program_that_heeds_sigterm_then_it_ends_well_within_the_grace(
    settings: LocalSettings, a_launch: ALaunch, gate: Gate
) -> None:
    launcher = LocalLauncher(replace(settings, cancel_grace_s=60))
    launch = a_launch(
        "import time\nfrom tidegate_spark import set_output\n"
        "try:\n    set_output('pids', [])\n    time.sleep(600)\nfinally:\n    print('cleaned')\n"
    )
    await launcher.submit(launch)
    await reported_pids(gate, 0)
    begun = time.monotonic()
    assert (await cancelled(launcher, launch)).exit_code == 143
    assert time.monotonic() - begun < ENDS_S_MAX * slowness()
    assert output_of(launcher, launch) == "cleaned\n"
    assert [body["reason"] for body in gate.of("finished")] == ["terminated"]


async def test_given_a_cancel_that_another_node_goes_on_with_then_what_the_program_does_about_it_is_not_cut_off(
    settings: LocalSettings, a_launch: ALaunch, gate: Gate, latch: Latch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: each node that took the shard over meanwhile sent another SIGTERM, which ended the program's cleaning up."""
    sent: list[signal.Signals] = []
    send = Watch.send

    def noted(watch: Watch, what: signal.Signals) -> None:
        sent.append(what)
        send(watch, what)

    monkeypatch.setattr(Watch, "send", noted)
    settings = replace(settings, cancel_grace_s=600)
    first, second = LocalLauncher(settings), LocalLauncher(settings)
    launch = a_launch(
        "import time\nfrom tidegate_spark import report_partition, set_output\n"
        "try:\n    set_output('pids', [])\n    time.sleep(600)\n"
        f"finally:\n    report_partition('cleaning', 'up')\n    {latch.wait_statement}\n    print('cleaned')\n"
    )
    await first.submit(launch)
    await reported_pids(gate, 0)
    cancel = asyncio.create_task(cancelled(first, launch))
    await asyncio.to_thread(gate.wait_for, "partitions")
    another = asyncio.create_task(cancelled(second, launch))
    await asyncio.to_thread(latch.release)
    assert [end.exit_code for end in await asyncio.gather(cancel, another)] == [143, 143]
    assert sent == [signal.SIGTERM]
    assert output_of(first, launch) == "cleaned\n"


async def test_given_a_disk_that_is_full_then_the_program_that_fills_it_can_be_cancelled(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: the request could not be written down, so that nothing was done about it for as long as the program went on."""

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    launch = a_launch(STUBBORN)
    await launcher.submit(launch)
    await reported_pids(gate, 3)
    monkeypatch.setattr(RunFolder, "write_cancel", no_room)
    monkeypatch.setattr(Path, "touch", no_room)
    assert (await cancelled(launcher, launch)).signal == 9
    never_started = RunFolder.within(settings.data_dir, launch.run_id, 2)
    never_started.make()
    with pytest.raises(LaunchUnavailable, match="No space left"):
        await launcher.cancel(launch.run_id, 2)


async def test_given_a_cancel_while_it_is_submitted_then_it_never_starts(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, gate: Gate
) -> None:
    launch = a_launch("print('never')")
    folder_of(settings, launch).make()
    assert (await cancelled(launcher, launch)).reason == "it never started on this host"
    with pytest.raises(LaunchRejected, match="was cancelled on this host before it started"):
        await launcher.submit(launch)
    assert await launcher.lookup(launch.run_id, 1, None, None) == Absent()
    assert gate.of("start") == []


async def test_given_nothing_of_it_on_this_host_then_a_cancel_says_so_and_leaves_no_folder(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch
) -> None:
    launch = a_launch("print('elsewhere')")
    assert await launcher.cancel(launch.run_id, 1) == Absent()
    assert not folder_of(settings, launch).path.parent.exists()
