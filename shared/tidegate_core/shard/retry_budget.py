"""How many retries a namespace may make: a dependency that is down must not turn every run into a stream of attempts.

Retries of a low class could use the budget up, and a retry of a higher class would wait for ten minutes. So a retry counts those of its
own class and of higher classes only.

One per shard's owner, by the runs that it has seen: a successor begins with those that are open, each with its last retry. Nothing
but the pace rests on it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from tidegate_core.language.definitions.priority import Priority, rank_of

BUDGET_WINDOW_MS: Final = 10 * 60_000
SHARE: Final = 5
"""One retry for so many launches within the window (SEMANTICS 8: 20 %)."""
ALWAYS: Final = 5
"""Retries of a namespace and shard in a window that any number of launches allows: else a daily run had none."""


class Retried(NamedTuple):
    """A retry: when it begins, and the class of its run as a number (`rank_of`)."""

    at: int
    rank: int


class RetryBudget:
    """Launches and retries of the last ten minutes, by namespace."""

    def __init__(self) -> None:
        self._launches: defaultdict[str, list[int]] = defaultdict(list)
        self._retries: defaultdict[str, list[Retried]] = defaultdict(list)

    def launched(self, namespace: str, at: int) -> None:
        """A run was admitted."""
        launches = self._launches[namespace]
        insort(launches, at)
        # Here as well, for a namespace that never retries: by the latest launch, there is no clock here.
        del launches[: bisect_right(launches, launches[-1] - BUDGET_WINDOW_MS)]

    def retried(self, namespace: str, priority: Priority, at: int) -> None:
        """A further attempt of a run of this class begins at this instant, which may be to come."""
        insort(self._retries[namespace], Retried(at, rank_of(priority)))

    def earliest(
        self, namespace: str, priority: Priority, wanted: int, now: int, beside: Iterable[Retried] = ()
    ) -> int:
        """Returns when the next retry may begin: at the instant that is wanted, or at the first one behind it that the budget has room at.

        Args:
            namespace: Whose budget it is.
            priority: Class of the run.
            wanted: When it would begin.
            now: The present.
            beside: Retries that are as good as made.
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
    """Returns when the last window of ten minutes begins that holds `most` retries, and would hold one more at this instant.

    Some begin later: those of hours from now leave room before them.
    """
    place = bisect_right(retries, at)
    for first in range(min(place, len(retries) - most), max(place - most, 0) - 1, -1):
        if max(at, retries[first + most - 1]) - min(at, retries[first]) < BUDGET_WINDOW_MS:
            return retries[first]
    return None
