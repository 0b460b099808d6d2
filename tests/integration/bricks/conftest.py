"""Waiting for what other processes do."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

#: Generous, since the machine may be busy; nothing here needs more than a few seconds otherwise.
PATIENCE_S = 60.0


class Until(Protocol):
    """Waits until a condition holds; fails the test with `what` where it never does."""

    def __call__(self, condition: Callable[[], bool], what: str) -> None: ...


@pytest.fixture
def until() -> Until:
    def wait(condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"waited {PATIENCE_S:.0f} s in vain: {what}")
            time.sleep(0.02)

    return wait


@pytest.fixture
def alive() -> Callable[[int], bool]:
    """Whether a process exists and is no zombie."""

    def check(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    return check
