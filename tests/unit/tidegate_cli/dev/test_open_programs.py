from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate_cli.dev.open_programs import OpenProgram, end_programs, open_programs

IGNORES_SIGTERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
)
OBEYS = "import time; print(1, flush=True); time.sleep(600)"


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def a_program(processes: list[subprocess.Popen[str]], runs: Path, run_id: str, source: str = OBEYS) -> OpenProgram:
    """Starts a program as the local launcher does: a session of its own, with a record in the run's folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    processes.append(process)
    assert process.stdout is not None
    process.stdout.readline()
    folder = runs / run_id / "a1"
    folder.mkdir(parents=True)
    (folder / "supervisor.json").write_text(json.dumps({"pid": process.pid, "started": "1"}))
    return OpenProgram(run_id, process.pid)


def test_given_a_program_that_runs_then_it_is_found(processes: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    program = a_program(processes, tmp_path, "0001-a")
    assert open_programs(tmp_path) == [program]


def test_given_a_recorded_end_or_a_dead_process_then_it_is_not_open(
    processes: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    a_program(processes, tmp_path, "0001-ended")
    (tmp_path / "0001-ended" / "a1" / "exit.json").write_text("{}")
    a_program(processes, tmp_path, "0001-dead")
    processes[-1].kill()
    processes[-1].wait()
    assert open_programs(tmp_path) == []


def test_given_a_broken_record_or_no_folder_then_nothing_is_open(tmp_path: Path) -> None:
    (tmp_path / "0001-x" / "a1").mkdir(parents=True)
    (tmp_path / "0001-x" / "a1" / "supervisor.json").write_text('{"pid": "many"}')
    assert open_programs(tmp_path) == []
    assert open_programs(tmp_path / "gone") == []


def test_given_a_program_that_obeys_then_it_ends_by_sigterm(
    processes: list[subprocess.Popen[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate_cli.dev.open_programs.END_GRACE_S", 60.0)  # It may not get to it for a while.
    end_programs([a_program(processes, tmp_path, "0001-a")])
    assert processes[0].wait() == -15


def test_given_a_program_that_ignores_sigterm_then_it_is_killed(
    processes: list[subprocess.Popen[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate_cli.dev.open_programs.END_GRACE_S", 0.2)
    end_programs([a_program(processes, tmp_path, "0001-a", IGNORES_SIGTERM)])
    assert processes[0].wait() == -9
