"""How much longer processes took because the machine's cores were busy with others: what a bound in seconds is stretched by.

Linux counts for each thread the time that it ran and the time that it was ready to run and waited for a core
(`/proc/PID/task/TID/schedstat`, the first two numbers, in ns).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

PROC = Path("/proc")
ThreadTimes: TypeAlias = Mapping[tuple[int, int], tuple[int, int]]
"""By (process, thread): ns run, ns waited for a core, since the thread began."""


def family_of(pid: int, proc: Path = PROC) -> set[int]:
    """Returns the process with its children and theirs, as they are now."""
    parents: dict[int, int] = {}
    for file in proc.glob("[0-9]*/stat"):
        with suppress(OSError):  # The process ended since it was listed.
            # The name stands in parentheses and may hold anything; state and parent follow it.
            _, parent, *_ = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            parents[int(file.parent.name)] = int(parent)
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family


class Starvation:
    """Begins to count at once.

    Args:
        pids: The processes that do the work. One that has ended since counts no longer.
    """

    def __init__(self, pids: Iterable[int], proc: Path = PROC) -> None:
        self._proc = proc
        self._pids = tuple(pids)
        self._begun = self._times()

    @classmethod
    def of_whole_lives(cls, pids: Iterable[int], proc: Path = PROC) -> Starvation:
        """Returns one that has counted since the processes began."""
        starvation = cls(pids, proc)
        starvation._begun = {}
        return starvation

    def stretch(self) -> float:
        """Returns (run + waited) / run since the begin, at least 1; 1 where nothing ran or the kernel does not count."""
        ran = waited = 0
        for thread, (ran_now, waited_now) in self._times().items():
            ran_before, waited_before = self._begun.get(thread, (0, 0))
            ran += ran_now - ran_before
            waited += waited_now - waited_before
        return 1.0 + waited / ran if ran > 0 else 1.0

    def _times(self) -> ThreadTimes:
        times: dict[tuple[int, int], tuple[int, int]] = {}
        for pid in self._pids:
            for file in (self._proc / str(pid) / "task").glob("*/schedstat"):
                try:
                    ran, waited, *_ = file.read_text(encoding="ascii").split()
                except OSError:  # The thread ended since it was listed.
                    continue
                times[pid, int(file.parent.name)] = (int(ran), int(waited))
        return times
