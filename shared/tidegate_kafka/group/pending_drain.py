"""A revocation that waits for the topic partitions' owner, for a bounded time."""

from __future__ import annotations

import threading

GUARD_MARGIN_MS = 250
"""Left of the guard when a drain ends, for the other topic partitions' next probe to be answered."""


class PendingDrain:
    """Implements the port `Drain`."""

    def __init__(self, deadline_ms: int) -> None:
        self._deadline_ms = deadline_ms
        self._done = threading.Event()

    @property
    def deadline_ms(self) -> int:
        return self._deadline_ms

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    def done(self) -> None:
        self._done.set()

    def wait(self, now: int) -> bool:
        """Blocks until it is done or its deadline; True when it was done."""
        return self._done.wait(max(0, self._deadline_ms - now) / 1000)


def drain_ms(drain_ms_max: int, guard_remaining_ms: int) -> int:
    """How long a revocation may wait while nothing is polled, so that no probe's answer is read either.

    A guard that lapses meanwhile would purge the records of the topic partitions that stay. One that has lapsed already
    has nothing left to protect.
    """
    if guard_remaining_ms <= 0:
        return drain_ms_max
    return max(0, min(drain_ms_max, guard_remaining_ms - GUARD_MARGIN_MS))
