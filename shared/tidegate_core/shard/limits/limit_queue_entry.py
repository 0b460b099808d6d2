"""Queue entries of a job for shared limits, and its admissions in shared rates. The admission stage calls it.

A queue entry is written and removed together with its job, so an ended job waits nowhere. Its key holds the whole
order. A lost entry is written again at the next check, in the same position.

A job requests its limits in a fixed order, each after an offer of the one before. So two jobs that need the same two
limits never hold one each and wait for the other's. Rates come first, the longest span before all: a job that waits
for time to pass then keeps no permit from other jobs.

While it waits for the next limit, it steps aside in the queues before. It keeps its position, and only the first of
the jobs that stepped aside keeps its offer (`limit_coordinator.py`), so that a busy limit does not stop another one.
With the last offer it returns for the offers that it gave back. Until it has them, it keeps its other offers for as
long as an offer stands and there is room. To wait longer against the order could block two jobs forever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, NamedTuple

from tidegate_core.language.constraints.constraint import LimitRef
from tidegate_core.language.definitions.run_policies import Priority, class_of, order_of
from tidegate_core.rows import keys
from tidegate_core.rows.effects import WakeUp
from tidegate_core.rows.job import Job
from tidegate_core.rows.shared_limit import QueueEntry, SharedLimit
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.writes.limit_permits import key_of, key_text, mark_queue, owner_shard_of
from tidegate_core.writes.rate_counters import Counted, count_admission
from tidegate_core.writes.unit_of_work import UnitOfWork

IDLE_MS: Final = 3_600_000
"""Interval of idle checks: one to two hours after a use, long after any late repeat.

All uses within an hour share a row.
"""


def schedule_idle_check(unit: UnitOfWork, limit: Key, after: int, home: int) -> None:
    """Schedules an idle check by the coordinator, in the transaction that may create the limit's item.

    For limits of keys only.

    Args:
        unit: Unit of work that takes the row.
        limit: Any shared limit.
        after: Time until which the limit is in use: now, or the end of an admission's span.
        home: Owner shard of the limit.
    """
    if keys.is_of_key(limit):
        row = _row(limit, after)
        unit.set_row(row, row.key(home))


def _row(limit: Key, after: int) -> TimerRow:
    return TimerRow(at=(after // IDLE_MS + 2) * IDLE_MS, kind=keys.LIMIT_TIMER, ref=limit.pk)


ASK_AGAIN_MS = 10_000
"""Interval at which a job checks its entry. The coordinator removes it when no node answers an offer."""
KEEP_OFFER_MS = 4_000
"""Interval at which a job with an offer that waits for another limit renews its entry; offers lapse after 10 s."""

NEVER = 1 << 62


class LimitRequest(NamedTuple):
    """A shared limit of which a job needs a permit.

    Attributes:
        turn: Order of requests, smallest first: the negative span of a rate, 0 of other limits.
        offered: True when the job has an offer.
        has_room: True when a permit is free.
    """

    turn: int
    limit: Key
    most: int
    offered: bool
    has_room: bool


@dataclass(frozen=True, slots=True)
class QueueEntries:
    """The result of writing a job's queue entries.

    Attributes:
        joined: Limits whose queue the job has just joined or rejoined.
        moved: Limits in whose queue the job has just stepped aside or returned, or for which its bound changed.
        wrote: True when any entry was written.
        look_again: Time of the next check of its entries.
        due: Time at which it must rewrite them; checks before that only make sure that they exist.
    """

    job: Job
    joined: tuple[Key, ...]
    look_again: int
    due: int
    moved: tuple[Key, ...] = ()
    wrote: bool = False


class _Asked(NamedTuple):
    """A limit with the key of the job's entry and the entry, if it exists."""

    need: LimitRequest
    key: Key
    row: QueueEntry | None

    @property
    def was_granted(self) -> bool:
        return self.need.offered or (self.row is not None and bool(self.row.aside))


def wait_for(
    unit: UnitOfWork, job: Job, needs: Iterable[LimitRequest], priority: Priority, shards: int, now: int
) -> QueueEntries:
    """Writes the entries that the job needs now and removes the others."""

    def row_of(need: LimitRequest) -> QueueEntry:
        return row_for(job, need.limit, need.most, priority, now)

    known: list[_Asked] = []
    for need in sorted(needs):
        key = row_of(need).key(owner_shard_of(need.limit, shards))
        known.append(_Asked(need, key, unit.record(QueueEntry, key) if key_text(key) in job.asked else None))
    before, last = _in_turn(known)
    asked = tuple(key_text(each.key) for each in (*before, *last))
    for text in job.asked:
        if text not in asked:
            unit.forget_row(key_of(text))
    joined, moved, keeps, wrote = list[Key](), list[Key](), len(last) > 1, False
    for number, (need, key, row) in enumerate((*before, *last)):
        aside = number < len(before) or None
        holds = need.offered and aside is not None
        keeps = keeps or holds
        written = replace(row_of(need), aside=aside)
        if row is None:
            joined.append(need.limit)
            unit.set_row(written, key)
        elif _has_moved(row, written) or (holds and row.asked_at + KEEP_OFFER_MS <= now):
            # Written over the revision that was read. If the coordinator removed that entry, the job rejoins with a
            # mark. Otherwise its queue could be closed.
            unit.put(written, key)
            if _has_moved(row, written):
                moved.append(need.limit)
        else:
            continue
        wrote = True
    look_again = now + (KEEP_OFFER_MS if keeps else ASK_AGAIN_MS)
    due = look_again if keeps else NEVER
    return QueueEntries(replace(job, asked=asked), tuple(joined), look_again, due, tuple(moved), wrote)


def row_for(job: Job, limit: Key, most: int, priority: Priority, now: int) -> QueueEntry:
    """Returns the job's entry in the queue of a limit, not stepped aside."""
    order = order_of(class_of(priority, catch_up=bool(job.catch_up)), job.waits_since)
    return QueueEntry(limit=limit.pk, job_id=job.id, satisfied_at=job.waits_since, order=order, most=most, asked_at=now)


def leave(unit: UnitOfWork, job: Job) -> Job:
    """Removes the job from all queues, in the transaction that admits or ends it, or finds another blocker."""
    for text in job.asked:
        unit.forget_row(key_of(text))
    return replace(job, asked=())


def mark(unit: UnitOfWork, places: Sequence[QueueEntries], shards: int, now: int) -> None:
    """Marks each joined queue once, and wakes the coordinators of joined queues and of queues in which a job moved."""
    joined = {limit: place.job.id for place in places for limit in place.joined}
    for limit, job_id in joined.items():
        # Unique: a coordinator that saw an older mark has not seen this entry.
        unit.apply(mark_queue(limit, f"{job_id}@{now}"))
        schedule_idle_check(unit, limit, now, owner_shard_of(limit, shards))
    for limit in {**joined, **{limit: "" for place in places for limit in place.moved}}:
        unit.after(WakeUp(owner_shard_of(limit, shards), limit.pk))


def _has_moved(row: QueueEntry, written: QueueEntry) -> bool:
    """Returns whether the coordinator must learn of the change, because it affects the offers to this job or others.

    An update with `finish_old` may have changed how many runs the limit allows.
    """
    return (row.aside, row.most) != (written.aside, written.most)


def _in_turn(known: Sequence[_Asked]) -> tuple[list[_Asked], list[_Asked]]:
    """Returns the limits in which the job steps aside, and those in which it does not: its next request and the offers
    that it keeps.
    """
    before = list(takewhile(lambda each: each.was_granted, known))
    if len(before) == len(known):
        return [], before  # It has offers for all limits, except for those that it gave back.
    missing, *behind = known[len(before) :]
    words = [each for each in behind if each.need.offered and each.row is not None]
    if words and missing.need.has_room:
        return [], [*before, missing, *words]
    return before, [missing]


__all__ = [
    "ASK_AGAIN_MS",
    "KEEP_OFFER_MS",
    "LimitRequest",
    "QueueEntries",
    "count_in_rate",
    "leave",
    "mark",
    "row_for",
    "uncount_in_rate",
    "wait_for",
]


def count_in_rate(unit: UnitOfWork, limit: LimitRef, key: Key, job: Job, now: int) -> Counted:
    """Counts an admission in a rate. Returns the value that the run names."""
    assert limit.span is not None
    state = SharedLimit.of(unit.item(key))
    counted = Counted(key, limit.span.counts_until(now, len(state.counts)))
    # A passed pending time-out ignores rates, but the forced admission counts as well.
    forced = job.forced is not None and not state.at(now).lets_pass(job.id, limit.max)
    unit.apply(count_admission(counted, job.id, limit.max, state, now, forced=forced))
    return counted


def uncount_in_rate(unit: UnitOfWork, text: str, now: int) -> None:
    """Withdraws an admission that still counts, in the transaction that ends its run before the start, or parks it."""
    counted = Counted.named(text)
    seen = SharedLimit.of(unit.item(counted.limit)).counts.get(counted.until, 0)
    if counted.until > now and seen:  # A node whose clock is ahead may have removed it already.
        unit.give_back(counted._replace(seen=seen))
