"""What the nodes' counters say, over all of their lives: a kill takes a process's counters along, not what was read before."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tests.support.cluster.process import ClusterProcess, metric_on

WATCHED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "rebalances": ("tidegate_rebalances_total", {}),
    "fenced": ("tidegate_fenced_total", {}),
    "refused_writes": ("tidegate_transactions_total", {"verdict": "refused"}),
    "unknown_writes": ("tidegate_transactions_total", {"verdict": "unavailable"}),
    "failed_calls": ("tidegate_store_call_failures_total", {}),
    "not_produced": ("tidegate_records_not_produced_total", {}),
    "dead_letters": ("tidegate_dead_letters_total", {}),
    "launches": ("tidegate_launches_total", {}),
    "messages": ("tidegate_messages_delivered_total", {}),
}
"""Our name of a counter: the metric, and the labels of the samples that are summed."""
LEFT_OUT: Mapping[str, Sequence[Mapping[str, str]]] = {
    "failed_calls": ({"code": "ConditionalCheckFailedException"}, {"code": "TransactionCanceledException"})
}
"""Samples that a counter has and that are none of what we mean: a refusal because of a condition is an answer, and no fault of the
store's; a phase in which only such ones were counted would pass for one that was felt."""


class Meter:
    """Reads counters now and then; what a process counted after the last look before its end is missing. Thread-safe."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], Counter[str]] = {}
        self._lock = threading.Lock()

    def look(self, processes: Iterable[ClusterProcess]) -> bool:
        """Reads those that run and answer; returns whether all that run did."""
        all_answered = True
        for process in processes:
            life = (process.name, process.lives)
            status, page = process.ask("/metrics") if process.running else (0, "")
            if status != 200:
                all_answered = all_answered and not process.running
                continue
            counts = Counter({name: _count(page, name) for name in WATCHED})
            with self._lock:
                # Two threads look: an older page must not take a newer one's place.
                self._seen[life] = self._seen.get(life, Counter()) | counts
        return all_answered

    def total(self, *names: str) -> Counter[str]:
        """Returns the sums over all lives, of those processes or of all."""
        with self._lock:
            return sum((counts for (name, _), counts in self._seen.items() if not names or name in names), Counter())


def _count(page: str, name: str) -> int:
    metric, labels = WATCHED[name]
    left_out = sum(metric_on(page, metric, **labels, **other) for other in LEFT_OUT.get(name, ()))
    return int(metric_on(page, metric, **labels) - left_out)
