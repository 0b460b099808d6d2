"""A job's rows in the queues of shared limits, against homes that take them away at the same time."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.support.builders import NOW, a_job
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.rows import keys
from tidegate_core.rows.job import Job
from tidegate_core.rows.shared_limit import QueueEntry, SharedLimit
from tidegate_core.rows.store_operations import Delete, Key
from tidegate_core.shard.limits import limit_queue_entry
from tidegate_core.shard.limits.limit_queue_entry import KEEP_OFFER_MS
from tidegate_core.writes.limit_permits import key_text, owner_shard_of
from tidegate_core.writes.unit_of_work import UnitOfWork

SHARDS = 4
FIRST, SECOND = sorted(keys.shared_limit("flights", "group", group) for group in ("yard", "gate"))
JOB = a_job(1)


@dataclass(frozen=True)
class Asks:
    """The part of an admission that has the job wait, with the word for the first of its limits."""

    job: Job
    name: str = "admit"
    about: str = "flights/one"
    stale: tuple[Key, ...] = ()

    def decide(self, unit: UnitOfWork, now: int) -> None:
        needs = [
            limit_queue_entry.LimitRequest(0, FIRST, 1, offered=True, has_room=True),
            limit_queue_entry.LimitRequest(0, SECOND, 1, False, False),
        ]
        place = limit_queue_entry.wait_for(unit, self.job, needs, "medium", SHARDS, now)
        unit.put(place.job, place.job.key(unit.shard))
        limit_queue_entry.mark(unit, [place], SHARDS, now)


def row_in(limit: Key) -> Key:
    waiter = QueueEntry(
        limit=limit.pk, job_id=JOB.id, satisfied_at=JOB.waits_since, most=1, asked_at=NOW, order=JOB.waits_since
    )
    return waiter.key(owner_shard_of(limit, SHARDS))


def asked(desk: DecisionHarness) -> Job:
    """The job, as it has asked for both and stands aside before the first."""
    desk.lay(JOB)
    desk.decide(Asks(JOB))
    found = desk.record(Job, JOB.key(0))
    assert found is not None
    assert set(found.asked) == {key_text(row_in(FIRST)), key_text(row_in(SECOND))}
    return found


@pytest.mark.parametrize("taken_away", [False, True])
def test_given_a_row_that_its_home_takes_away_at_the_same_time_then_it_is_not_brought_back_without_a_mark(
    taken_away: bool,
) -> None:
    """Simulation, seed 251: a queue was closed in which such a row waited, and others passed it."""
    desk = DecisionHarness()
    job = asked(desk)
    transaction, _ = desk.prepare(Asks(job), NOW + KEEP_OFFER_MS)
    assert transaction is not None
    assert row_in(FIRST) in {
        action.key for action in transaction.actions
    }  # Its word is kept, by writing the row again.
    if taken_away:
        desk.store.write([Delete(row_in(FIRST))])
    desk.store.transact(transaction)
    assert (desk.store.peek(row_in(FIRST)) is None) == taken_away


def test_given_a_row_that_is_gone_then_it_is_written_again_with_a_mark_that_nobody_has_seen() -> None:
    desk = DecisionHarness()
    job = asked(desk)
    seen = SharedLimit.of(desk.store.peek(FIRST)).queued
    desk.store.write([Delete(row_in(FIRST))])
    desk.decide(Asks(job), NOW + 1)
    assert desk.store.peek(row_in(FIRST)) is not None
    assert SharedLimit.of(desk.store.peek(FIRST)).queued not in {None, seen}
