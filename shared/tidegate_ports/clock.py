"""The clock port: wall time for schedules, and time since boot for membership leases and deadlines."""

from __future__ import annotations

import time
from typing import Protocol

NANOSECONDS_PER_MS = 1_000_000


class Clock(Protocol):
    """Two clocks in milliseconds."""

    def now_ms(self) -> int:
        """Wall clock: milliseconds since the Unix epoch, UTC. It may step; the core checks it."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary point; never goes back, and counts on while the machine is suspended."""
        ...


class SystemClock:
    """The machine's clocks."""

    # Linux's CLOCK_MONOTONIC stops while the machine is suspended. A membership lease on it would still hold after a
    # laptop's lid was closed for an hour. CLOCK_BOOTTIME counts on; macOS lacks that name, and its monotonic clock
    # counts on.
    _CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now_ms(self) -> int:
        return time.time_ns() // NANOSECONDS_PER_MS

    def monotonic_ms(self) -> int:
        return time.clock_gettime_ns(self._CLOCK) // NANOSECONDS_PER_MS
