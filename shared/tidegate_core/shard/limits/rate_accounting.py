"""Admissions in rates that schedules share: counted by the transaction that admits a run, taken back when it comes to nothing."""

from __future__ import annotations

from tidegate_core.language.constraints.constraint import LimitRef
from tidegate_core.rows.job import Job
from tidegate_core.rows.shared_limit import SharedLimit
from tidegate_core.rows.store_operations import Key
from tidegate_core.writes.rate_counters import Counted, count_admission
from tidegate_core.writes.unit_of_work import UnitOfWork


def count(unit: UnitOfWork, limit: LimitRef, key: Key, job: Job, now: int) -> Counted:
    """Counts an admission; returns what the run names."""
    assert limit.span is not None
    state = SharedLimit.of(unit.item(key))
    counted = Counted(key, limit.span.counts_until(now, len(state.counts)))
    # A pending time-out ignores rates (SEMANTICS 7.7): what it forces takes its place all the same.
    forced = job.forced is not None and not state.at(now).lets_pass(job.id, limit.max)
    unit.apply(count_admission(counted, job.id, limit.max, state, now, forced=forced))
    return counted


def uncount(unit: UnitOfWork, text: str, now: int) -> None:
    """Takes an admission back, unless it counts no more; in the transaction that ends its run before the start, or parks it."""
    counted = Counted.named(text)
    seen = SharedLimit.of(unit.item(counted.limit)).counts.get(counted.until, 0)
    if counted.until > now and seen:  # A clock that is ahead may have taken it out already.
        unit.give_back(counted._replace(seen=seen))
