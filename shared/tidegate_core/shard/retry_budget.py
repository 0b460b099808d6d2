"""Limits the retries of a namespace: a failing dependency must not turn every run into a stream of attempts.

If retries of a low class could use up the budget, a retry of a higher class would wait for ten minutes. So a retry
counts only retries of its own class and of higher classes.

Each owner has one per shard, built from the runs that it has seen. A successor begins with the open runs, each with
its last retry. Only the pace depends on it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from tidegate_core.language.definitions.run_policies import Priority, rank_of

BUDGET_WINDOW_MS: Final = 10 * 60_000
SHARE: Final = 5
"""Launches per retry within the window: 20 %."""
ALWAYS: Final = 5
"""Retries of a namespace and shard in a window that are always allowed; otherwise a daily run would have none."""


class Retried(NamedTuple):
    """A retry: its start, and the class of its run as a number (`rank_of`)."""

    at: int
    rank: int


class RetryBudget:
    """Launches and retries of the last ten minutes, by namespace."""

    def __init__(self) -> None:
        self._launches: defaultdict[str, list[int]] = defaultdict(list)
        self._retries: defaultdict[str, list[Retried]] = defaultdict(list)

    def launched(self, namespace: str, at: int) -> None:
        """Notes the admission of a run."""
        launches = self._launches[namespace]
        insort(launches, at)
        # Also trims a namespace that never retries, by its latest launch: there is no clock here.
        del launches[: bisect_right(launches, launches[-1] - BUDGET_WINDOW_MS)]

    def retried(self, namespace: str, priority: Priority, at: int) -> None:
        """Notes a retry of a run of this class; its start may lie in the future."""
        insort(self._retries[namespace], Retried(at, rank_of(priority)))

    def earliest(
        self, namespace: str, priority: Priority, wanted: int, now: int, beside: Iterable[Retried] = ()
    ) -> int:
        """Returns the start of the next retry: the wanted time, or the first later one within the budget.

        Args:
            namespace: Namespace of the run.
            priority: Class of the run.
            wanted: Wanted start.
            now: Present time.
            beside: Retries that are already decided in this transaction.
        """
        launches, retried = self._launches[namespace], self._retries[namespace]
        del launches[: bisect_right(launches, now - BUDGET_WINDOW_MS)]
        del retried[: bisect_right(retried, now - BUDGET_WINDOW_MS, key=attrgetter("at"))]
        mine = rank_of(priority)
        retries = sorted(each.at for each in (*retried, *beside) if each.rank <= mine)
        most = max(ALWAYS, len(launches) // SHARE)
        at = wanted
        while (full := _last_of_full_windows(retries, most, at)) is not None:
            at = full + BUDGET_WINDOW_MS
        return at


def _last_of_full_windows(retries: Sequence[int], most: int, at: int) -> int | None:
    """Returns the begin of the last ten-minute window with `most` retries that would exceed the budget with one more at
    this instant.

    Retries that start hours later leave room before them.
    """
    place = bisect_right(retries, at)
    for first in range(min(place, len(retries) - most), max(place - most, 0) - 1, -1):
        if max(at, retries[first + most - 1]) - min(at, retries[first]) < BUDGET_WINDOW_MS:
            return retries[first]
    return None
