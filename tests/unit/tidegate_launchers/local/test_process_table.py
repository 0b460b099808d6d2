from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tidegate_launchers.local import process_table
from tidegate_launchers.local.process_table import boot_id, facts_of, is_alive, members

MARKER = f"TIDEGATE_RUN_FOLDER=/of/test/process/{os.getpid()}".encode()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process with the marker in a session of its own, that lives until its stdin is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict([MARKER.decode().split("=")]),
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # It runs its program, and so carries its own environment.
        yield process
        process.kill()


def test_given_a_living_process_then_it_leads_its_group_and_is_itself(sleeper: subprocess.Popen[bytes]) -> None:
    facts = facts_of(sleeper.pid)
    assert facts is not None
    assert facts.group == sleeper.pid
    assert is_alive(sleeper.pid, facts.started)
    assert [found.pid for found in members(sleeper.pid, facts.started, b"other=1")] == [sleeper.pid]


def test_given_another_start_time_then_the_number_was_reused_and_nobody_is_a_member(
    sleeper: subprocess.Popen[bytes],
) -> None:
    assert not is_alive(sleeper.pid, "1")
    assert members(sleeper.pid, "1", b"other=1") == []


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc shows environments")
def test_given_the_marker_then_a_process_belongs_whatever_its_group(sleeper: subprocess.Popen[bytes]) -> None:
    assert [found.pid for found in members(2**22 + 1, "1", MARKER)] == [sleeper.pid]
    assert members(2**22 + 1, "1", MARKER + b"0") == []


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc shows environments")
def test_given_another_attempts_marker_then_its_group_and_session_are_that_ones(
    sleeper: subprocess.Popen[bytes],
) -> None:
    """Its own leader has ended, so that nothing but the marker says whose group the number is now."""
    facts = facts_of(sleeper.pid)
    assert facts is not None
    assert members(sleeper.pid, facts.started, MARKER + b"0") == []


def test_given_a_zombie_then_it_is_not_alive(sleeper: subprocess.Popen[bytes]) -> None:
    facts = facts_of(sleeper.pid)
    assert facts is not None
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)  # It has ended, and stays a zombie.
    assert facts_of(sleeper.pid) is None
    assert members(sleeper.pid, facts.started, MARKER) == []


def test_given_no_such_process_then_there_are_no_facts() -> None:
    assert facts_of(2**22 + 1) is None


def test_given_one_boot_then_its_id_does_not_change() -> None:
    assert boot_id() == boot_id() != ""


def test_given_no_proc_then_ps_gives_the_same_answers(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What happens on macOS, as far as another system's `ps` can show it."""
    monkeypatch.setattr(process_table, "PROC", tmp_path_factory.mktemp("no-proc"))
    facts = facts_of(sleeper.pid)
    assert facts is not None
    assert facts.group == sleeper.pid
    assert is_alive(sleeper.pid, facts.started)
    assert [found.pid for found in members(sleeper.pid, facts.started, MARKER)] == [sleeper.pid]
    assert members(sleeper.pid, "Thu Jan  1 00:00:00 1970", MARKER) == []
    assert facts_of(2**22 + 1) is None
