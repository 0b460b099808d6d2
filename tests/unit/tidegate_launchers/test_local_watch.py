"""What a program's end means, from what its supervisor wrote down."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tidegate_launchers.local_files import Exit, Record, RunFolder
from tidegate_launchers.local_watch import Watch
from tidegate_ports.launcher import Ended

BOOT = "boot-1"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder.within(tmp_path, "0001-run", 1)
    folder.make()
    folder.write_record(Record(1, "0", 1, "0", "here", BOOT))
    return folder


def test_given_a_signal_ended_it_then_the_exit_code_is_the_one_of_shells_and_the_signal_is_known(
    folder: RunFolder,
) -> None:
    folder.write_exit(Exit(None, signal.SIGKILL, 1_000, 5))
    assert Watch(folder, BOOT).ended() == Ended(137, 9, "transient", "ended by signal 9")


def test_given_an_exit_code_then_it_is_told_as_it_is(folder: RunFolder) -> None:
    folder.write_exit(Exit(3, None, 1_000, 5))
    assert Watch(folder, BOOT).ended() == Ended(3, None, "transient", "exit code 3")


def test_given_nobody_saw_the_end_then_there_is_no_code(folder: RunFolder) -> None:
    ended = Watch(folder, BOOT).ended()
    assert (ended.exit_code, ended.signal) == (None, None)
