"""A job's place in the queues of shared limits: when it joins, keeps and leaves them (DESIGN 6). Used by the admission.

A waiter row is written and removed together with the job that it is about, so a job that has ended waits nowhere. Its key
holds all that gives the order; a row that was lost is simply written again at the next look, at the same place.

A job that needs several limits asks for them in one order, the next once it has had the word for the one before: of two jobs that
need the same two limits, one has the word for the first, so they never hold one each and wait for the other's. Rates come first,
those with the longest span before all: who waits for time to pass keeps nobody from a slot that could be used meanwhile.

While it waits for the next one it stands aside in the queues before: it keeps its place, and only the first of those that stand
aside keeps the word (`limit_coordinator.py`), so that a busy limit does not stop another one. Once it has the word for the last one it
comes back for what it has handed back, and keeps what it has meanwhile, for as long as an offer stands and there is room: waiting
for longer against the order is what two jobs could do to each other for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, NamedTuple

from tidegate_core.language.constraints.constraint import LimitRef
from tidegate_core.language.definitions.priority import Priority, class_of, order_of
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
"""An item is looked at one to two hours after it was used: long past any late repeat. All uses of an hour share a row."""


def schedule_idle_check(unit: UnitOfWork, limit: Key, after: int, home: int) -> None:
    """Has the limit's home look whether it is idle, in the transaction that may make its item; of a key's limits only.

    Args:
        unit: Takes the row.
        limit: Any shared limit.
        after: Until then it is not idle: the present, or until when an admission counts.
        home: Shard of the limit.
    """
    if keys.is_of_key(limit):
        row = _row(limit, after)
        unit.set_row(row, row.key(home))


def _row(limit: Key, after: int) -> TimerRow:
    return TimerRow(at=(after // IDLE_MS + 2) * IDLE_MS, kind=keys.LIMIT_TIMER, ref=limit.pk)


ASK_AGAIN_MS = 10_000
"""A job looks for its row within this: its home took it away while nobody here answered an offer."""
KEEP_OFFER_MS = 4_000
"""How often a job that has one limit's word and waits for another's says that it is still there; offers lapse after 10 s."""

NEVER = 1 << 62


class LimitRequest(NamedTuple):
    """A shared limit that a job has to have a permit of.

    Attributes:
        turn: Those with less are asked for first: of a rate its span, negative; of others 0.
        offered: The job has the word for a free slot of it.
        has_room: Not all slots are in use.
    """

    turn: int
    limit: Key
    most: int
    offered: bool
    has_room: bool


@dataclass(frozen=True, slots=True)
class QueueEntries:
    """What a job has written about its waiting.

    Attributes:
        joined: Limits whose queue it joined, or joined again, just now.
        moved: Limits in whose queue it stands aside since just now, or does not any more; or whose bound is another one for it.
        wrote: Whether it wrote any row.
        look_again: When it has to look after its rows.
        due: When it has to write them again; before that it only looks whether they are there.
    """

    job: Job
    joined: tuple[Key, ...]
    look_again: int
    due: int
    moved: tuple[Key, ...] = ()
    wrote: bool = False


class _Asked(NamedTuple):
    """A limit, where the job's row in its queue lies, and the row if there is one."""

    need: LimitRequest
    key: Key
    row: QueueEntry | None

    @property
    def was_granted(self) -> bool:
        return self.need.offered or (self.row is not None and bool(self.row.aside))


def wait_for(
    unit: UnitOfWork, job: Job, needs: Iterable[LimitRequest], priority: Priority, shards: int, now: int
) -> QueueEntries:
    """Writes the rows that the job has to have now, and removes those that it must not have any more."""

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
            # On the row that was seen: one that its home has taken away meanwhile comes back with a mark, or its queue could be closed.
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
    """Returns the job's row in the queue of a limit, as it is while the job does not stand aside."""
    order = order_of(class_of(priority, catch_up=bool(job.catch_up)), job.waits_since)
    return QueueEntry(limit=limit.pk, job_id=job.id, satisfied_at=job.waits_since, order=order, most=most, asked_at=now)


def leave(unit: UnitOfWork, job: Job) -> Job:
    """Takes the job out of all queues: in the transaction that admits or ends it, or finds that something else holds it."""
    for text in job.asked:
        unit.forget_row(key_of(text))
    return replace(job, asked=())


def mark(unit: UnitOfWork, places: Sequence[QueueEntries], shards: int, now: int) -> None:
    """Marks the queues that jobs have joined, each once, and tells their homes; those in which they moved as well."""
    joined = {limit: place.job.id for place in places for limit in place.joined}
    for limit, job_id in joined.items():
        # Unique: whoever sees an older mark has not seen this row.
        unit.apply(mark_queue(limit, f"{job_id}@{now}"))
        schedule_idle_check(unit, limit, now, owner_shard_of(limit, shards))
    for limit in {**joined, **{limit: "" for place in places for limit in place.moved}}:
        unit.after(WakeUp(owner_shard_of(limit, shards), limit.pk))


def _has_moved(row: QueueEntry, written: QueueEntry) -> bool:
    """Whether its home has to know of it: what is offered to it, or to others, is another matter now.

    An update that carries jobs on may have changed how many runs their limit lets run.
    """
    return (row.aside, row.most) != (written.aside, written.most)


def _in_turn(known: Sequence[_Asked]) -> tuple[list[_Asked], list[_Asked]]:
    """Returns those in which it stands aside, and those in which it does not: what it waits for, and words that it keeps."""
    before = list(takewhile(lambda each: each.was_granted, known))
    if len(before) == len(known):
        return [], before  # Words for all, but for those that it has handed back.
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
    """Counts an admission; returns what the run names."""
    assert limit.span is not None
    state = SharedLimit.of(unit.item(key))
    counted = Counted(key, limit.span.counts_until(now, len(state.counts)))
    # A pending time-out ignores rates (SEMANTICS 7.7): what it forces takes its place all the same.
    forced = job.forced is not None and not state.at(now).lets_pass(job.id, limit.max)
    unit.apply(count_admission(counted, job.id, limit.max, state, now, forced=forced))
    return counted


def uncount_in_rate(unit: UnitOfWork, text: str, now: int) -> None:
    """Takes an admission back, unless it counts no more; in the transaction that ends its run before the start, or parks it."""
    counted = Counted.named(text)
    seen = SharedLimit.of(unit.item(counted.limit)).counts.get(counted.until, 0)
    if counted.until > now and seen:  # A clock that is ahead may have taken it out already.
        unit.give_back(counted._replace(seen=seen))
