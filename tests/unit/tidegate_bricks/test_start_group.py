"""Several bricks start side by side, and all or none."""

import threading
from pathlib import Path

import pytest

from tidegate_bricks.errors import BrickFailed, BrickUnavailable
from tidegate_bricks.local_server import START_TIMEOUT_S, STOP_TIMEOUT_S
from tidegate_bricks.start_group import start_together, stop_together

WAIT_S = 30


class FakeBrick:
    """A brick whose start waits for a signal, fails, or is ended by a stop."""

    name, endpoint, log_path, note = "fake-1", "127.0.0.1:1", Path("fake.log"), None

    def __init__(self, may_answer: threading.Event | None = None, failure: BrickUnavailable | None = None) -> None:
        self.running = False
        self.starting = threading.Event()
        self._may_answer = may_answer
        self._failure = failure
        self._stopped = threading.Event()

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        self.starting.set()
        if self._failure is not None:
            raise self._failure
        while self._may_answer is not None and not self._may_answer.wait(timeout=0.01):
            if self._stopped.is_set():
                raise BrickFailed("stopped while it started")
        self.running = True

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        self._stopped.set()
        self.running = False

    def kill(self) -> None:
        self.stop()

    def pause(self) -> None:
        """Never called here."""

    def resume(self) -> None:
        """Never called here."""


class Interrupted(FakeBrick):
    """Ctrl-C comes while it starts."""

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        raise KeyboardInterrupt


def test_given_bricks_that_wait_for_each_other_then_both_start() -> None:
    first = FakeBrick()
    second = FakeBrick(may_answer=first.starting)
    first_waits_for_second = FakeBrick(may_answer=second.starting)
    seconds = start_together([first_waits_for_second, second, first])
    assert len(seconds) == 3
    assert first_waits_for_second.running
    assert second.running


def test_given_one_fails_then_those_under_way_end_and_those_that_run_stop() -> None:
    ready, endless = FakeBrick(), FakeBrick(may_answer=threading.Event())
    failing = FakeBrick(failure=BrickUnavailable("no Java was found", "install one"))
    with pytest.raises(BrickUnavailable, match="no Java was found"):
        start_together([ready, endless, failing])
    assert not ready.running
    assert not endless.running


def test_given_ctrl_c_then_those_under_way_end() -> None:
    endless = FakeBrick(may_answer=threading.Event())
    with pytest.raises(KeyboardInterrupt):
        start_together([endless, Interrupted()])
    assert not endless.running


def test_given_running_bricks_then_all_stop() -> None:
    bricks = [FakeBrick(), FakeBrick()]
    start_together(bricks)
    stop_together(bricks)
    assert not any(brick.running for brick in bricks)
