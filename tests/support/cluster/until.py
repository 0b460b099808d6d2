"""Waiting for what can be observed, with a deadline; nothing here sleeps for luck."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
PATIENCE_S = 120.0
"""Deadline of a wait that names none; the machine may be busy, a pass never takes it."""
LOOK_EVERY_S = 0.05


class NotInTime(AssertionError):
    """What was waited for did not come."""


def until(
    condition: Callable[[], Found | None],
    what: str,
    patience_s: float = PATIENCE_S,
    look_every_s: float = LOOK_EVERY_S,
) -> Found:
    """Asks until the answer is true, and returns it.

    Args:
        condition: Asked again and again; what it raises reaches the caller.
        what: Stands in the error.
        patience_s: Deadline in seconds.
        look_every_s: Pause between two looks, in seconds.

    Raises:
        NotInTime: The deadline passed; the message carries the last answer.
    """
    deadline = time.monotonic() + patience_s
    while True:
        said = condition()
        if said:
            return said
        if time.monotonic() >= deadline:
            raise NotInTime(f"{what}: not within {patience_s:g} s (last answer: {said!r})")
        time.sleep(look_every_s)


def now_ms() -> int:
    """Wall clock of this host in ms since the epoch: the broker and all programs run on the same one."""
    return time.time_ns() // 1_000_000
