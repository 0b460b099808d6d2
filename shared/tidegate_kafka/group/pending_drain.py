"""Revocation that waits a bounded time until the owner has drained the topic partitions."""

from __future__ import annotations

import threading

GUARD_MARGIN_MS = 250
"""Rest of the membership lease when a drain ends, so that the next probe for the other topic partitions can be
answered."""


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
        """Blocks until the drain is done or its deadline passes; returns whether it was done."""
        return self._done.wait(max(0, self._deadline_ms - now) / 1000)


def drain_ms(drain_ms_max: int, guard_remaining_ms: int) -> int:
    """Returns how long a revocation may wait. Nothing is polled during it, so no probe's answer is read either.

    If the membership lease lapsed during the wait, records of the remaining topic partitions would be purged. A lease
    that has lapsed before the drain needs no protection.
    """
    if guard_remaining_ms <= 0:
        return drain_ms_max
    return max(0, min(drain_ms_max, guard_remaining_ms - GUARD_MARGIN_MS))
