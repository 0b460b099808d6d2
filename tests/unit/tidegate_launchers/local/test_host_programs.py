"""Which programs of a host live, told by what they carry, and how they are asked to end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidegate_launchers.local.command import MARKER_VARIABLE, SUPERVISOR_VARIABLE
from tidegate_launchers.local.host_programs import LocalPrograms
from tidegate_launchers.local.process_table import boot_id, facts_of
from tidegate_launchers.local.run_folder import Exit, Record, RunFolder
from tidegate_launchers.local.settings import LocalSettings


@pytest.fixture
def settings(tmp_path: Path) -> LocalSettings:
    return LocalSettings(data_dir=tmp_path.resolve(), host="node-1")


WAITS = "import sys; sys.stdout.write('x'); sys.stdout.flush(); sys.stdin.read()"
COUNTS = "import signal, sys; signal.signal(15, lambda *_: print('told', flush=True)); " + WAITS


@contextmanager
def a_program(
    folder: RunFolder, body: str = WAITS, *, variable: str = MARKER_VARIABLE, is_started: bool = True
) -> Iterator[subprocess.Popen[bytes]]:
    folder.make()
    command = (sys.executable, "-S", "-c", body)
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={variable: str(folder.path)},
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"x"
        facts = facts_of(process.pid)
        assert facts is not None
        if is_started:
            folder.write_record(Record(process.pid, facts.started, process.pid, facts.started, "node-1", boot_id()))
        yield process


def test_given_programs_of_this_and_of_another_stack_then_those_of_this_one_count(
    settings: LocalSettings, tmp_path: Path
) -> None:
    programs = LocalPrograms(settings)
    assert programs.under_way() == 0
    ours = RunFolder.within(settings.data_dir, "r-1", 1)
    with a_program(ours), a_program(RunFolder.within(tmp_path / "another", "r-1", 1)):
        assert programs.under_way() == 1
    assert programs.under_way() == 0


def test_given_an_attempt_that_ended_then_what_it_left_behind_is_no_program(settings: LocalSettings) -> None:
    folder = RunFolder.within(settings.data_dir, "r-1", 1)
    with a_program(folder):
        folder.write_exit(Exit(0, None, 1_800_000_000_000, 5))
        assert LocalPrograms(settings).under_way() == 0


def test_given_two_programs_then_both_are_asked_to_end_and_nothing_is_written_of_a_cancel(
    settings: LocalSettings,
) -> None:
    folders = [RunFolder.within(settings.data_dir, "r-1", attempt) for attempt in (1, 2)]
    with a_program(folders[0]) as first, a_program(folders[1]) as second:
        LocalPrograms(settings).ask_to_end()
        assert [process.wait(30) for process in (first, second)] == [-signal.SIGTERM] * 2
    assert [folder.cancelled_at() for folder in folders] == [None, None]


def test_given_a_program_that_does_something_about_it_then_it_is_not_asked_again(settings: LocalSettings) -> None:
    """Read: a second SIGTERM ended what a program did about the first one."""
    with a_program(RunFolder.within(settings.data_dir, "r-1", 1), COUNTS) as process:
        programs = LocalPrograms(settings)
        for _ in range(3):
            programs.ask_to_end()
        assert process.stdout is not None
        assert process.stdout.readline() == b"told\n"
        out, _ = process.communicate()
    assert out == b""


def test_given_an_attempt_that_is_just_being_started_then_it_counts_and_is_asked_when_it_has_begun(
    settings: LocalSettings,
) -> None:
    folder = RunFolder.within(settings.data_dir, "r-1", 1)
    programs = LocalPrograms(settings)
    with a_program(folder, variable=SUPERVISOR_VARIABLE, is_started=False):
        programs.ask_to_end()
        assert programs.under_way() == 1
        with a_program(folder) as process:
            programs.ask_to_end()
            assert process.wait(30) == -signal.SIGTERM


def test_given_a_damaged_folder_then_the_others_are_told_all_the_same(settings: LocalSettings) -> None:
    damaged, whole = (RunFolder.within(settings.data_dir, "r-1", attempt) for attempt in (1, 2))
    with a_program(damaged), a_program(whole) as process:
        for name in ("exit.json", "supervisor.json"):
            (damaged.path / name).write_text("{")
        programs = LocalPrograms(settings)
        assert programs.under_way() == 2
        programs.ask_to_end()
        assert process.wait(30) == -signal.SIGTERM
