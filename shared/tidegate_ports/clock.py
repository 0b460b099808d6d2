"""The clock as the drivers see it: wall time for the schedules, and time since boot for guards and deadlines."""

from __future__ import annotations

import time
from typing import Protocol

NANOSECONDS_PER_MS = 1_000_000


class Clock(Protocol):
    """Milliseconds, two kinds."""

    def now_ms(self) -> int:
        """Wall clock: milliseconds since the Unix epoch, UTC. May step; the core checks it (DESIGN 2)."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary point; never goes back and goes on while the machine is suspended."""
        ...


class SystemClock:
    """The machine's clocks."""

    # Linux's CLOCK_MONOTONIC stands still while the machine is suspended, and a guard on it would still hold after a
    # laptop's lid was closed for an hour. CLOCK_BOOTTIME counts on; macOS has no such name and counts on anyway.
    _CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now_ms(self) -> int:
        return time.time_ns() // NANOSECONDS_PER_MS

    def monotonic_ms(self) -> int:
        return time.clock_gettime_ns(self._CLOCK) // NANOSECONDS_PER_MS
