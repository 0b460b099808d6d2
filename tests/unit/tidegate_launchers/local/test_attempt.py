"""What a program's end means, from what its supervisor wrote down."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tidegate_launchers.local import process_table
from tidegate_launchers.local.attempt import Watch
from tidegate_launchers.local.command import MARKER_VARIABLE
from tidegate_launchers.local.run_folder import Exit, Record, RunFolder
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
    assert Watch(folder, BOOT).ended() == Ended(3, None, "unknown", "exit code 3")


def test_given_a_program_that_cannot_start_then_its_end_names_the_cause_and_the_last_lines_of_its_error_output(
    folder: RunFolder,
) -> None:
    """`spark.driver.memory: "4 gigs"` had ten attempts, and no reason but its exit code."""
    java = "".join(
        f"\tat org.apache.spark.deploy.SparkSubmit.step{number}(SparkSubmit.scala:{number})\n" for number in range(200)
    )
    folder.stderr.write_text(
        f'Exception in thread "main" java.io.IOException: Cannot run program "python9"\n{java}\t... 12 more\n'
    )
    folder.write_exit(Exit(1, None, 1_000, 5))
    words = 'Exception in thread "main" java.io.IOException: Cannot run program "python9"'
    assert Watch(folder, BOOT).ended() == Ended(1, None, "unknown", f"exit code 1: {words}", words)


def test_given_a_program_that_went_well_then_nothing_of_its_error_output_is_told(folder: RunFolder) -> None:
    folder.stderr.write_text("WARN: slow\n")
    folder.write_exit(Exit(0, None, 1_000, 5))
    assert Watch(folder, BOOT).ended() == Ended(0)


def test_given_nobody_saw_the_end_then_there_is_no_code(folder: RunFolder) -> None:
    ended = Watch(folder, BOOT).ended()
    assert (ended.exit_code, ended.signal) == (None, None)


def test_given_two_nodes_that_ask_at_once_then_the_second_waits_until_the_first_has_noted_that_it_asked(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that asked between the signal and the note sent another SIGTERM, and that cut off the program's cleaning up."""
    sent: list[signal.Signals] = []
    second = threading.Thread(target=lambda: Watch(folder, BOOT).ask_to_end(), daemon=True)

    def send(watch: Watch, what: signal.Signals) -> None:
        sent.append(what)
        if len(sent) == 1:
            second.start()
            descriptor = os.open(folder.path, os.O_RDONLY)
            with pytest.raises(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(descriptor)
            assert not folder.told.exists()

    monkeypatch.setattr(Watch, "send", send)
    Watch(folder, BOOT).ask_to_end()
    second.join()
    assert sent == [signal.SIGTERM]


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc shows environments")
def test_given_a_daemon_that_the_program_left_behind_then_only_its_end_has_the_whole_host_looked_through(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: for as long as it lived each look read all of /proc, five times a second for each such run."""
    looks = 0
    everybody = process_table._from_proc_all

    def counted() -> object:
        nonlocal looks
        looks += 1
        return everybody()

    monkeypatch.setattr(process_table, "_from_proc_all", counted)
    folder.write_record(Record(2**22 + 1, "0", 2**22 + 1, "0", "here", BOOT))
    command = (sys.executable, "-S", "-c", "import sys; print(flush=True); sys.stdin.read()")
    environment = {MARKER_VARIABLE: str(folder.path)}
    watch = Watch(folder, BOOT)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as daemon:
        assert daemon.stdout is not None
        daemon.stdout.readline()  # It carries its own environment.
        assert [watch.presence() for _ in range(10)] == ["alive"] * 10
        assert looks == 1
        daemon.kill()
    assert watch.presence() == "gone"
    assert looks == 2
