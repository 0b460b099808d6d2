"""Ends of a command in the middle of its work: what it was doing is told before it ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

TERMINATED = 128 + signal.SIGTERM


@contextmanager
def told_of_sigterm() -> Iterator[None]:
    """Makes SIGTERM, with which build servers end a job at its time limit, an exception in the block, as Ctrl-C is one.

    Raises:
        SystemExit: SIGTERM came; its code is 143, as a shell has it.
    """
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(TERMINATED)
