"""The supervisor of a run, as others find it among the processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate_launchers.local_files import Record, RunFolder
from tidegate_launchers.local_processes import boot_id, is_alive
from tidegate_launchers.local_watch import Watch


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
        [sys.executable, "-m", "tidegate_launchers.local_supervisor", str(folder.path)],
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
