"""The local launcher with real supervisors and programs: ends, failures, twins."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.launchers.local_runs import ALaunch, Gate, Latch, ended, folder_of, output_of, reported_pids
from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.process_table import boot_id, facts_of
from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.launcher import Ended, LaunchUnavailable

STILL_THERE_S = 0.3
"""Fifteen looks of the launcher; long enough for a wrong "gone" to show."""


def exit_seen(folder: RunFolder) -> None:
    """Returns once the supervisor wrote down the program's end."""
    while folder.exit() is None:
        time.sleep(0.01)


async def test_given_a_program_that_ends_then_its_end_output_and_report_are_there(
    launcher: LocalLauncher, a_launch: ALaunch, gate: Gate
) -> None:
    launch = a_launch(
        "import sys; from tidegate_spark import context; print(sys.argv[1:], context().nominal)", "a", "b"
    )
    submission = await launcher.submit(launch)
    assert submission.place == "node-1"
    assert submission.instance == boot_id()
    assert submission.external_id.startswith(f"{launch.name}@node-1:")
    assert await ended(launcher, launch) == Ended(0)
    assert output_of(launcher, launch) == "['a', 'b'] 2026-03-03 05:00:00+00:00\n"
    assert [body["outcome"] for body in gate.of("finished")] == ["succeeded"]


async def test_given_the_gate_refuses_then_the_end_is_config_with_the_wrappers_words(
    launcher: LocalLauncher, a_launch: ALaunch, gate: Gate
) -> None:
    gate.status = 403
    launch = a_launch("print('never')")
    await launcher.submit(launch)
    end = await ended(launcher, launch)
    assert (end.exit_code, end.error_class) == (78, "config")
    assert end.reason.startswith(f"the start gate refused run {launch.run_id} attempt 1 with 403")


async def test_given_the_gate_is_away_then_the_end_is_transient(
    settings: LocalSettings, a_launch: ALaunch, gate: Gate
) -> None:
    gate.status = 503
    launcher = LocalLauncher(replace(settings, gate_wait_s=0))
    launch = a_launch("print('never')")
    await launcher.submit(launch)
    end = await ended(launcher, launch)
    assert (end.exit_code, end.error_class) == (75, "transient")
    assert "no word from the start gate" in end.reason


async def test_given_a_command_that_cannot_be_executed_then_the_end_is_config_and_names_it(
    settings: LocalSettings, a_launch: ALaunch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/nowhere\n")
    launch = a_launch("print('never')")
    folder = folder_of(settings, launch)
    folder.make()
    plan = {"command": [str(python)], "environment": {}, "host": "node-1"}
    supervisor(folder, json.dumps(plan)).check_returncode()
    end = await ended(LocalLauncher(settings), launch)
    assert (end.exit_code, end.error_class) == (78, "config")
    assert end.reason.startswith(f"{python} cannot be started: ")


async def test_given_a_data_folder_that_cannot_be_made_then_submit_may_be_tried_again(
    settings: LocalSettings, a_launch: ALaunch
) -> None:
    settings.data_dir.write_text("in the way")
    with pytest.raises(LaunchUnavailable, match="ask again"):
        await LocalLauncher(settings).submit(a_launch("print('never')"))


async def test_given_a_full_disk_then_the_same_submit_starts_it_once_there_is_room(
    launcher: LocalLauncher, a_launch: ALaunch, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = a_launch("print('there is room')")

    def full(self: RunFolder, name: str, document: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path / name))

    with monkeypatch.context() as disk:
        disk.setattr(RunFolder, "write_json", full)
        with pytest.raises(LaunchUnavailable, match="No space left on device"):
            await launcher.submit(launch)

    await launcher.submit(launch)

    assert await ended(launcher, launch) == Ended(0)
    assert output_of(launcher, launch) == "there is room\n"
    assert len(gate.of("start")) == 1


async def test_given_a_damaged_record_then_every_question_may_be_asked_again(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch
) -> None:
    launch = a_launch("print('never')")
    folder = folder_of(settings, launch)
    folder.make()
    (folder.path / "supervisor.json").write_text("{")
    for question in (launcher.submit(launch), launcher.lookup(launch.run_id, 1, None, None), ended(launcher, launch)):
        with pytest.raises(LaunchUnavailable, match=r"supervisor\.json is damaged"):
            await question


async def test_given_files_of_a_run_then_the_token_is_in_none_and_others_may_not_read_them(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch
) -> None:
    launch = a_launch("import os; print(sorted(os.environ))")
    await launcher.submit(launch)
    await ended(launcher, launch)
    files = [path for path in settings.data_dir.rglob("*") if path.is_file()]
    assert {"context.json", "exit.json", "stdout.log", "stderr.log", "supervisor.json"} <= {path.name for path in files}
    for path in files:
        assert b"secret-of-the-test" not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_given_a_child_that_outlives_the_program_then_the_end_waits_for_the_whole_group(
    settings: LocalSettings, launcher: LocalLauncher, a_launch: ALaunch, gate: Gate, latch: Latch
) -> None:
    launch = a_launch(
        "import os, subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {latch.wait_statement!r}], stdout=subprocess.DEVNULL)\n"
        "os._exit(0)\n"
    )
    await launcher.submit(launch)
    waiting = asyncio.create_task(ended(launcher, launch))
    await asyncio.to_thread(exit_seen, folder_of(settings, launch))
    done, _ = await asyncio.wait({waiting}, timeout=STILL_THERE_S)
    assert not done
    await asyncio.to_thread(latch.release)
    assert await waiting == Ended(0)


@pytest.mark.parametrize("argument", ["a\0b", "\ud800"], ids=["NUL", "half a character"])
async def test_given_an_argument_that_no_process_takes_then_the_end_is_config_and_says_why(
    launcher: LocalLauncher, a_launch: ALaunch, argument: str
) -> None:
    """An upstream run's output becomes an argument, and may hold anything."""
    launch = a_launch("print('never')", argument)
    await launcher.submit(launch)
    end = await ended(launcher, launch)
    assert (end.exit_code, end.error_class) == (78, "config")
    assert "cannot be started: " in end.reason


def supervisor(folder: RunFolder, plan: str) -> subprocess.CompletedProcess[str]:
    """Starts a supervisor as the launcher does, with a plan of the test's own."""
    return subprocess.run(
        [sys.executable, "-P", "-S", "-m", "tidegate_launchers.local.program_supervisor", str(folder.path)],
        input=plan,
        text=True,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        timeout=60,
    )


async def test_given_a_daemon_that_outlives_its_program_then_it_is_ended(
    settings: LocalSettings, a_launch: ALaunch, gate: Gate
) -> None:
    """Its run's permits were free, and it went on for weeks beside the runs that came after it."""
    launcher = LocalLauncher(replace(settings, leftover_wait_s=0.2, cancel_grace_s=0.5))
    launch = a_launch(
        "import subprocess, sys\n"
        "from tidegate_spark import set_output\n"
        "child = [sys.executable, '-c', 'import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)']\n"
        "daemon = subprocess.Popen(child, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)\n"
        "daemon.stdout.readline()\n"
        "set_output('pids', [daemon.pid])\n"
    )
    await launcher.submit(launch)
    (daemon,) = await reported_pids(gate, 1)
    assert (await asyncio.wait_for(ended(launcher, launch), 60)).exit_code == 0
    assert facts_of(daemon) is None
    log = (folder_of(settings, launch).path / "supervisor.log").read_text()
    assert f"the program left {daemon} behind: asked to end" in log
