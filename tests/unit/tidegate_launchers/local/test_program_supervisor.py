"""The supervisor of a run, as others find it among the processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate_launchers.local.attempt import Watch
from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.process_table import boot_id, is_alive
from tidegate_launchers.local.run_folder import Record, RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.launcher import Ended


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[tuple[RunFolder, int]]:
    """A run that lives, and the number of the process that its supervisor began as."""
    folder = RunFolder.within(tmp_path, "0001-new", 1)
    folder.make()
    plan = {
        "command": [sys.executable, "-c", "import signal; signal.pause()"],
        "environment": {"TIDEGATE_RUN_FOLDER": str(folder.path)},
        "host": "here",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "tidegate_launchers.local.program_supervisor", str(folder.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        first.stdin.write(json.dumps(plan).encode())
        first.stdin.close()
        assert first.stdout.readline() == b"started\n"
    yield folder, first.pid
    record = folder.record()
    assert record is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(record.pid, signal.SIGKILL)


def test_given_an_old_runs_number_is_anothers_supervisor_now_then_the_old_run_is_gone_and_its_cancel_meets_nobody(
    supervised: tuple[RunFolder, int], tmp_path: Path
) -> None:
    """A container that was restarted counts its processes anew, and its boot is the same."""
    folder, first = supervised
    record = folder.record()
    assert record is not None
    for number in (first, record.supervisor_pid, record.pid):
        old = RunFolder.within(tmp_path, f"0001-old-{number}", 1)
        old.make()
        old.write_record(Record(number, "1", 2**22 + 1, "1", "here", boot_id()))
        watch = Watch(old, boot_id())
        assert watch.presence() == "gone"
        watch.send(signal.SIGKILL)
    assert is_alive(record.supervisor_pid, record.supervisor_started)
    assert is_alive(record.pid, record.started)


async def test_given_no_room_for_the_end_of_a_program_then_it_is_written_once_there_is_some(
    supervised: tuple[RunFolder, int], tmp_path: Path
) -> None:
    """Found in review: on a disk that was full for a moment nobody learned the exit code, and all were told that the host had gone down."""
    folder, _ = supervised
    record = folder.record()
    assert record is not None
    in_the_way = folder.path / "exit.json"
    in_the_way.mkdir()
    os.killpg(record.pid, signal.SIGKILL)
    while is_alive(record.pid, record.started):  # noqa: ASYNC110 - nobody tells of another process's child
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)  # Time in which it fails.
    in_the_way.rmdir()
    launcher = LocalLauncher(LocalSettings(data_dir=tmp_path, host="here"))
    end = await asyncio.wait_for(launcher.wait_until_gone("0001-new", 1), 60)
    assert (end.exit_code, end.signal) == (128 + signal.SIGKILL, signal.SIGKILL)


@pytest.mark.parametrize(
    ("named", "starts_java", "told"),
    [
        pytest.param({"LANG": "xx_XX.UTF-8"}, True, "C.UTF-8", id="not installed"),
        pytest.param({"LANG": "xx_XX.UTF-8", "LC_CTYPE": "C.UTF-8"}, True, "C.UTF-8", id="one of two not installed"),
        pytest.param({"LC_ALL": "C"}, True, "C.UTF-8", id="ASCII alone"),
        pytest.param({"LC_ALL": "POSIX"}, True, "C.UTF-8", id="ASCII alone by its other name"),
        pytest.param({}, True, "C.UTF-8", id="none"),
        pytest.param({"LANG": "C.UTF-8"}, True, None, id="UTF-8"),
        pytest.param({"LC_ALL": "C"}, False, "C", id="no Java"),
    ],
)
async def test_given_a_locale_in_which_java_knows_ascii_alone_then_its_programs_get_another_one(
    tmp_path: Path, named: dict[str, str], *, starts_java: bool, told: str | None
) -> None:
    command = ["/bin/sh", "-c", 'echo "${LC_ALL-unset}"']
    end = await end_of(tmp_path, {"command": command, "environment": named, "starts_java": starts_java})
    stdout = RunFolder.within(tmp_path, "0001-new", 1).stdout.read_text()
    assert (end.exit_code, stdout.strip()) == (0, told or "unset")


async def test_given_an_interpreter_that_is_being_replaced_then_another_attempt_may_be_made(tmp_path: Path) -> None:
    interpreter = tmp_path / "interpreter"
    shutil.copy("/bin/sh", interpreter)
    with interpreter.open("r+b"):  # Linux starts no file that somebody writes.
        end = await end_of(tmp_path, {"command": [str(interpreter), "-c", "exit"], "environment": {}})
    assert (end.exit_code, end.error_class) == (75, "transient")


async def end_of(data_dir: Path, plan: dict[str, object]) -> Ended:
    folder = RunFolder.within(data_dir, "0001-new", 1)
    folder.make()
    supervisor = [sys.executable, "-m", "tidegate_launchers.local.program_supervisor", str(folder.path)]
    text = json.dumps({**plan, "host": "here"}).encode()
    started = await asyncio.to_thread(subprocess.run, supervisor, input=text, stdout=subprocess.PIPE, check=True)
    assert started.stdout == b"started\n"
    return await LocalLauncher(LocalSettings(data_dir=data_dir, host="here")).wait_until_gone("0001-new", 1)
