"""What processes have used: CPU and memory from `/proc` (Linux), units and calls of the store from their own counters."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.cluster.process import ClusterProcess, metric_on
from tests.support.cluster.until import until

PROC = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
UNITS = "tidegate_store_units_total"
CALLS = "tidegate_store_call_seconds_count"
TRANSACT = "transact_write_items"
MEBIBYTE = 1 << 20
CPU_FIELDS = slice(11, 13)
"""User and system time, counted behind the command's closing bracket in `/proc/PID/stat`."""


@dataclass(frozen=True, slots=True)
class Used:
    """Of one process since its start.

    Attributes:
        cpu_s: User and system time of all of its threads, also of those that have ended; steps of 10 ms.
        rss_mib: Resident memory now.
        write_units, read_units: Of the store; None where the process does not count them (an older revision).
        calls: To the store.
        transacted_units: Those of `write_units` that went in transactions.
        transactions: Of the calls.
    """

    cpu_s: float
    rss_mib: float
    write_units: float | None
    read_units: float | None
    calls: float
    transacted_units: float
    transactions: float


@dataclass(frozen=True, slots=True)
class Reading:
    """All processes at one moment.

    Attributes:
        at_s: Monotonic.
        used: By pid.
    """

    at_s: float
    used: Mapping[int, Used]


@dataclass(frozen=True, slots=True)
class Spent:
    """What they used between two readings; a process that began in between counts from its begin.

    Attributes:
        rss_mib: Of the largest one at the later reading.
        write_units, read_units: None where one of them does not count.
        transacted_units: Those of `write_units` that went in transactions.
        transactions: Of the calls.
    """

    wall_s: float
    cpu_s: float
    rss_mib: float
    write_units: float | None
    read_units: float | None
    calls: float
    transacted_units: float
    transactions: float


class Meter:
    """Reads the same processes again and again.

    Args:
        processes: Those that count; one that does not run is left out.
    """

    def __init__(self, processes: Iterable[ClusterProcess]) -> None:
        self._processes = list(processes)

    def read(self) -> Reading:
        running = [process for process in self._processes if process.running]
        return Reading(time.monotonic(), {process.pid: used_by(process) for process in running})


def spent(before: Reading, after: Reading) -> Spent:
    """Returns the difference of two readings."""
    nothing = Used(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    pairs = [(before.used.get(pid, nothing), used) for pid, used in after.used.items()]
    return Spent(
        wall_s=after.at_s - before.at_s,
        cpu_s=sum(later.cpu_s - earlier.cpu_s for earlier, later in pairs),
        rss_mib=max((later.rss_mib for _, later in pairs), default=0.0),
        write_units=_sum((earlier.write_units, later.write_units) for earlier, later in pairs),
        read_units=_sum((earlier.read_units, later.read_units) for earlier, later in pairs),
        calls=sum(later.calls - earlier.calls for earlier, later in pairs),
        transacted_units=sum(later.transacted_units - earlier.transacted_units for earlier, later in pairs),
        transactions=sum(later.transactions - earlier.transactions for earlier, later in pairs),
    )


def used_by(process: ClusterProcess) -> Used:
    """Asks one process that runs, until it has time to answer."""
    page = until(lambda: process.ask("/metrics")[1], f"{process.name} says what it has used")
    counts = UNITS in page
    return Used(
        cpu_s=cpu_s_of(process.pid),
        rss_mib=rss_mib_of(process.pid),
        write_units=metric_on(page, UNITS, kind="write") if counts else None,
        read_units=metric_on(page, UNITS, kind="read") if counts else None,
        calls=metric_on(page, CALLS),
        transacted_units=metric_on(page, UNITS, kind="write", operation=TRANSACT),
        transactions=metric_on(page, CALLS, operation=TRANSACT),
    )


def cpu_s_of(pid: int, proc: Path = PROC) -> float:
    """Returns user and system time of a process, in seconds."""
    # The command may hold blanks and brackets; what follows the last one does not.
    fields = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return sum(map(int, fields[CPU_FIELDS])) / TICKS_PER_S


def rss_mib_of(pid: int, proc: Path = PROC) -> float:
    """Returns the resident memory of a process, in MiB."""
    pages = int((proc / str(pid) / "statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE


def _sum(pairs: Iterable[tuple[float | None, float | None]]) -> float | None:
    total = 0.0
    for earlier, later in pairs:
        if earlier is None or later is None:
            return None
        total += later - earlier
    return total
