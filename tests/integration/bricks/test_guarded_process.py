"""A guarded process obeys, and never outlives whoever started it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidegate_bricks import logged_process
from tidegate_bricks.file_lock import FileLock
from tidegate_bricks.guarded_process import GuardedProcess
from tidegate_bricks.logged_process import LoggedProcess

Alive = Callable[[int], bool]
Until = Callable[[Callable[[], bool], str], None]

FOREVER = [sys.executable, "-c", "import time\nprint('up', flush=True)\ntime.sleep(600)"]
#: A program that starts a guarded process in a thread that ends at once, says its id, and waits for its own end.
PARENT = """
import os, sys, threading, time
from tidegate_bricks import logged_process
from tidegate_bricks.guarded_process import GuardedProcess
started = []
thread = threading.Thread(target=lambda: started.append(GuardedProcess(sys.argv[1:], output=2)))
thread.start()
thread.join()
print(started[0].pid, os.getppid(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "process.log"


@pytest.fixture
def process(log: Path) -> Iterator[LoggedProcess]:
    running = LoggedProcess(FOREVER, log)
    yield running
    running.close()


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    """A process that has started a guarded one, with this test's Python path and a session of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, *FOREVER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        start_new_session=True,
    ) as running:
        yield running
        running.kill()


def child_of(parent: subprocess.Popen[str]) -> int:
    assert parent.stdout is not None
    return int(parent.stdout.readline().split()[0])


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_given_terminate_then_process_ends_with_its_signal(process: LoggedProcess) -> None:
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert not process.running


def test_given_kill_while_paused_then_process_ends(process: LoggedProcess) -> None:
    process.pause()
    process.kill()
    assert process.wait(60) == 128 + signal.SIGKILL


def test_given_terminate_while_paused_then_process_ends_in_order(process: LoggedProcess) -> None:
    process.pause()
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM


def test_given_pause_and_resume_then_process_stands_still_and_goes_on(process: LoggedProcess, until: Until) -> None:
    process.pause()
    until(lambda: state_of(process.pid) == "T", "the process stops")
    process.resume()
    until(lambda: state_of(process.pid) == "S", "the process sleeps again")


def test_given_process_ends_by_itself_then_its_status_is_known(log: Path) -> None:
    process = LoggedProcess([sys.executable, "-c", "raise SystemExit(7)"], log)
    assert process.wait(60) == 7
    process.terminate()  # too late, and no error
    process.close()


def test_given_process_prints_then_last_lines_are_its_own(log: Path) -> None:
    log.write_text("an earlier start\n")
    process = LoggedProcess([sys.executable, "-c", "for n in range(40): print('line', n)"], log)
    process.wait(60)
    assert process.last_lines().splitlines() == [f"line {number}" for number in range(15, 40)]
    assert log.read_text().startswith("an earlier start\n")
    process.close()


def test_given_log_has_grown_large_then_next_start_sets_it_aside(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged_process, "LOG_BYTES_MAX", 10)
    log.write_text("more than ten bytes")
    process = LoggedProcess([sys.executable, "-c", "print('new')"], log)
    process.wait(60)
    assert log.read_text() == "new\n"
    assert log.with_name("process.log.1").read_text() == "more than ten bytes"
    process.close()


def test_given_program_that_does_not_exist_then_start_fails_and_log_says_why(log: Path) -> None:
    with pytest.raises(OSError, match="/nowhere/java could not be started"):
        LoggedProcess(["/nowhere/java"], log)
    assert "No such file" in log.read_text()


def test_given_process_runs_then_inherited_lock_is_held_until_it_ends(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock") as ours, FileLock(tmp_path / "lock") as other:
        assert ours.acquire(timeout_s=0)
        process = LoggedProcess(FOREVER, tmp_path / "log", inherited=[ours.descriptor])
        ours.release()
        assert not other.acquire(timeout_s=0)
        process.close()
        assert other.acquire(timeout_s=0)


def test_given_thread_that_started_it_ends_then_process_lives_on(parent: subprocess.Popen[str], alive: Alive) -> None:
    child = child_of(parent)
    assert alive(child)


def test_given_parent_is_killed_then_process_is_gone(parent: subprocess.Popen[str], alive: Alive, until: Until) -> None:
    child = child_of(parent)
    parent.kill()
    until(lambda: not alive(child), "the orphan ends")


def test_given_ctrl_c_at_the_terminal_then_parent_gets_it_and_process_does_not(parent: subprocess.Popen[str]) -> None:
    child = child_of(parent)
    assert os.getpgid(child) != os.getpgid(parent.pid)
    assert os.getsid(child) != os.getsid(parent.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a signal for a parent's death")
def test_given_guard_is_killed_then_process_is_gone(process: GuardedProcess, alive: Alive, until: Until) -> None:
    guard = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(guard, signal.SIGKILL)
    until(lambda: not alive(process.pid), "the process without guard ends")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_given_a_fork_holds_the_pipe_open_then_process_is_gone_all_the_same(
    tmp_path: Path, alive: Alive, until: Until
) -> None:
    """A forked child of the parent has a copy of the pipe, whose end must then not be what counts."""
    program = PARENT.replace("time.sleep(600)", "os.fork()\ntime.sleep(600)")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", program, *FOREVER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        start_new_session=True,
    ) as parent:
        child = child_of(parent)
        until(lambda: children_of(parent.pid) >= 2, "the fork")
        parent.kill()
        until(lambda: not alive(child), "the orphan ends")
        os.killpg(parent.pid, signal.SIGKILL)


def children_of(pid: int) -> int:
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
