"""Clauses of rates that schedules share, beyond those that they have in common with other shared limits."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.mutants.clauses.clause_mutant import dropped
from tests.simulation.mutants.clauses.limit_queue import does
from tidegate_core.records.limits import SharedLimit
from tidegate_core.store import keys
from tidegate_core.transactions.rates import Counted, count_admission, take_back
from tidegate_memory.store import MemoryStore

RATE = keys.shared_rate("flights", "group", "desk", 1_000, None)


def what_has_expired_is_taken_out_by_two_shards_and_taken_back() -> Iterable[str]:
    """Both have read the item when the one run of the last span was in it still, and its own owner's clock is behind."""
    store = MemoryStore()
    first = count_admission(Counted(RATE, 1_000), "0000-one", 1, SharedLimit(), 0)
    assert does(store, first)
    seen = SharedLimit.of(store.peek(RATE))
    for job in ("0001-two", "0002-three"):
        does(store, count_admission(Counted(RATE, 2_000), job, 1, seen, 1_000))
    does(store, take_back(RATE, [Counted(RATE, 1_000, seen=1)]))
    left = SharedLimit.of(store.peek(RATE))
    if left.counts != {2_000: 1} or left.in_use != 1:
        yield f"I4: {left.counts} are counted as {left.in_use} under a rate of 1"


CLAUSES_OF_RATES = (
    dropped(
        "counted_as_seen",
        "#count = :count",
        "two shards take the same admission out of a rate, and each lets a run go for it",
        breaks="I4",
        scenario=what_has_expired_is_taken_out_by_two_shards_and_taken_back,
    ),
)
