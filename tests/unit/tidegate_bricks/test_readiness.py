"""A server that was started either answers, or is ended with an error that says why."""

import time
from pathlib import Path

import pytest

from tidegate_bricks.errors import BrickFailed, PortTaken
from tidegate_bricks.logged_process import LoggedProcess
from tidegate_bricks.readiness import launch

LOG = Path("/data/broker.log")
PORT = 21000


class FakeProcess(LoggedProcess):
    """A process that exists only on paper: it ended with `status`, or runs until it is closed."""

    def __init__(self, status: int | None = None, printed: str = "") -> None:
        self.log_path = LOG
        self.pid = 4711
        self.closed = False
        self._status = status
        self._printed = printed

    @property
    def running(self) -> bool:
        return self._status is None

    def wait(self, timeout_s: float | None = None) -> int | None:
        return self._status

    def close(self) -> None:
        self.closed = True

    def last_lines(self) -> str:
        return self._printed


def in_a_minute() -> float:
    return time.monotonic() + 60


@pytest.fixture(autouse=True)
def listeners(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The ids of the processes that listen on PORT; at first that of the fake one."""
    pids = {4711}
    monkeypatch.setattr("tidegate_bricks.readiness.listens", lambda pid, port: port == PORT and pid in pids)
    return pids


def test_given_somebody_else_answers_on_the_port_then_that_does_not_count(listeners: set[int]) -> None:
    listeners.clear()
    with pytest.raises(BrickFailed, match="did not answer in time"):
        launch("Broker 1", FakeProcess(), PORT, lambda: True, time.monotonic())


def test_given_server_answers_at_third_question_then_it_is_returned_running() -> None:
    answers = iter([False, False, True])
    process = FakeProcess()
    assert launch("Broker 1", process, PORT, lambda: next(answers), in_a_minute()) is process
    assert not process.closed


def test_given_server_ends_then_error_shows_status_log_and_its_last_lines() -> None:
    process = FakeProcess(status=1, printed="java.io.IOException: disk full")
    with pytest.raises(BrickFailed, match="Broker 1 ended with status 1") as failure:
        launch("Broker 1", process, PORT, lambda: False, in_a_minute())
    assert not isinstance(failure.value, PortTaken)
    assert str(failure.value).endswith("its log is /data/broker.log, which ends with:\njava.io.IOException: disk full")


def test_given_port_was_taken_meanwhile_then_error_says_that_another_port_will_do() -> None:
    process = FakeProcess(status=1, printed="BindException: Address already in use")
    with pytest.raises(PortTaken):
        launch("Broker 1", process, PORT, lambda: False, in_a_minute())


def test_given_deadline_passes_then_server_is_ended() -> None:
    process = FakeProcess()
    with pytest.raises(BrickFailed, match="did not answer in time"):
        launch("Broker 1", process, PORT, lambda: False, time.monotonic())
    assert process.closed


def test_given_wait_is_given_up_then_server_is_ended() -> None:
    def interrupted() -> bool:
        raise KeyboardInterrupt

    process = FakeProcess()
    with pytest.raises(KeyboardInterrupt):
        launch("Broker 1", process, PORT, interrupted, in_a_minute())
    assert process.closed
