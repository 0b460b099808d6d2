"""Lets a command report its progress when a signal ends it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

TERMINATED = 128 + signal.SIGTERM


@contextmanager
def sigterm_as_exit() -> Iterator[None]:
    """Turns SIGTERM into an exception in the block, as Python does with Ctrl-C. Build servers send SIGTERM at a job's time limit.

    Raises:
        SystemExit: SIGTERM arrived; the code is 143, as in a shell.
    """
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(TERMINATED)
