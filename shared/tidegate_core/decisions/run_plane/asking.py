"""A job's place in the queues of shared limits: when it joins, keeps and leaves them (DESIGN 6). Used by the admission.

A waiter row is written and removed together with the job that it is about, so a job that has ended waits nowhere. Its key
holds all that gives the order; a row that was lost is simply written again at the next look, at the same place.

A job that needs several limits asks for them in one order, the next once it has the word for the one before: of two jobs that need
the same two limits, one has the word for the first, so they never hold one each and wait for the other's. Rates come first,
those with the longest span before all: who waits for time to pass keeps nobody from a slot that could be used meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tidegate_core.effects import Poke
from tidegate_core.model.priority import Priority, class_of, order_of
from tidegate_core.records.limits import Waiter
from tidegate_core.records.run_plane import Job
from tidegate_core.store.values import Key
from tidegate_core.transactions.limits import home_of, key_of, key_text, mark_queue
from tidegate_core.transactions.unit_of_work import UnitOfWork

ASK_AGAIN_MS = 10_000
"""A job looks for its row within this: its home took it away while nobody here answered an offer."""
KEEP_OFFER_MS = 4_000
"""How often a job that has one limit's word and waits for another's says that it is still there; offers lapse after 10 s."""

NEVER = 1 << 62


class Need(NamedTuple):
    """A shared limit that a job has to have a permit of.

    Attributes:
        turn: Those with less are asked for first: of a rate its span, negative; of others 0.
        offered: The job has the word for a free slot of it.
    """

    turn: int
    limit: Key
    most: int
    offered: bool


@dataclass(frozen=True, slots=True)
class Place:
    """What a job has written about its waiting.

    Attributes:
        joined: Limits whose queue it joined, or joined again, just now.
        wrote: Whether it wrote any row.
        look_again: When it has to look after its rows.
        due: When it has to write them again; before that it only looks whether they are there.
    """

    job: Job
    joined: tuple[Key, ...]
    look_again: int
    due: int
    wrote: bool = False


def wait_for(unit: UnitOfWork, job: Job, needs: Iterable[Need], priority: Priority, shards: int, now: int) -> Place:
    """Writes the rows that the job has to have now, and removes those that it must not have any more."""
    order = order_of(class_of(priority, catch_up=bool(job.catch_up)), job.waits_since)
    wanted = _in_turn(needs)
    rows = [
        Waiter(
            limit=each.limit.pk,
            job_id=job.id,
            satisfied_at=job.waits_since,
            order=order,
            most=each.most,
            asked_at=now,
        )
        for each in wanted
    ]
    placed = [(need, row, row.key(home_of(need.limit, shards))) for need, row in zip(wanted, rows, strict=True)]
    asked = tuple(key_text(key) for _, _, key in placed)
    for text in job.asked:
        if text not in asked:
            unit.forget_row(key_of(text))
    joined: list[Key] = []
    keeps = wrote = False
    for need, row, key in placed:
        known = unit.record(Waiter, key) if key_text(key) in job.asked else None
        holds = need.offered and need is not wanted[-1]
        if known is None:
            joined.append(need.limit)
        keeps = keeps or holds
        if known is None or (holds and known.asked_at + KEEP_OFFER_MS <= now):
            unit.set_row(row, key)
            wrote = True
    kept = replace(job, asked=asked)
    if keeps:
        return Place(kept, tuple(joined), now + KEEP_OFFER_MS, now + KEEP_OFFER_MS, wrote)
    return Place(kept, tuple(joined), now + ASK_AGAIN_MS, NEVER, wrote)


def leave(unit: UnitOfWork, job: Job) -> Job:
    """Takes the job out of all queues: in the transaction that admits or ends it, or finds that something else holds it."""
    for text in job.asked:
        unit.forget_row(key_of(text))
    return replace(job, asked=())


def mark(unit: UnitOfWork, places: Sequence[Place], shards: int, now: int) -> None:
    """Marks the queues that jobs have joined, each once, and tells their homes."""
    joined = {limit: place.job.id for place in places for limit in place.joined}
    for limit, job_id in joined.items():
        # Unique: whoever sees an older mark has not seen this row.
        unit.apply(mark_queue(limit, f"{job_id}@{now}"))
        unit.after(Poke(home_of(limit, shards), limit.pk))


def _in_turn(needs: Iterable[Need]) -> list[Need]:
    """Returns those that the job has the word for, up to and including the first that it has not."""
    wanted: list[Need] = []
    for need in sorted(needs):
        wanted.append(need)
        if not need.offered:
            break
    return wanted


__all__ = ["ASK_AGAIN_MS", "KEEP_OFFER_MS", "Need", "Place", "leave", "mark", "wait_for"]
