"""Bugs in how a job that needs several limits lets others pass while it waits, and comes to its turn all the same (decision 24)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from tests.simulation.mutants.mutant import Mutant, Patch, around, instead, returning
from tidegate_core.admission import abandoned_queue, admit, limit_coordinator
from tidegate_core.rows import keys
from tidegate_core.rows.shared_limit import QueueEntry, SharedLimit
from tidegate_core.rows.store_operations import Key, RangeRead
from tidegate_core.shard.limits import limit_queue_entry
from tidegate_core.writes import limit_permits
from tidegate_core.writes.unit_of_work import UnitOfWork

ABORTING_BEHIND_A_QUEUE_TESTS = "unit/tidegate_core/admission/test_aborting_behind_a_queue.py"
STANDING_ASIDE_TESTS = "unit/tidegate_core/admission/test_standing_aside.py"


def ending_behind_its_own_row(
    has_its_turn: Callable[..., bool], unit: UnitOfWork, limit: Key, mine: QueueEntry, shards: int, now: int
) -> bool:
    rows = unit.elsewhere(
        RangeRead(keys.shard_pk(limit_permits.owner_shard_of(limit, shards)), *keys.queue_entries_of(limit))
    )
    return all(row["job_id"] != mine.job_id for row in rows) and has_its_turn(unit, limit, mine, shards, now)


def writing_rows_blindly(put: Callable[..., None], unit: UnitOfWork, record: Any, key: Key) -> None:
    (unit.set_row if isinstance(record, QueueEntry) else partial(put, unit))(record, key)


def without_those_aside(state: SharedLimit, waiters: Sequence[QueueEntry]) -> list[QueueEntry]:
    return [waiter for waiter in waiters if not waiter.aside]


def staying_aside(in_turn: Callable[..., Any], known: Sequence[Any]) -> Any:
    aside, last = in_turn(known)
    return (last[:-1], last[-1:]) if len(last) == len(known) else (aside, last)


ASIDE: Final = (
    Mutant(
        "aborted behind those aside",
        "a job that aborts ends because of others who wait for another limit, and whom the free slots are not for",
        breaks="order",
        patches=(Patch(abandoned_queue, "in_line", instead(lambda state, waiters: list(waiters))),),
        killed_by=f"{ABORTING_BEHIND_A_QUEUE_TESTS}::test_given_that_the_words_of_those_who_stand_aside_were_not_taken_back_yet_then_they_keep_no_slot_from_it",
    ),
    Mutant(
        "aborted behind itself",
        "a job that waits for one limit, and aborts at another one, ends because of its own row in the queue of that",
        breaks="order",
        patches=(Patch(admit, "would_be_granted", around(ending_behind_its_own_row)),),
        killed_by=f"{ABORTING_BEHIND_A_QUEUE_TESTS}::test_given_a_job_that_aborts_at_one_limit_and_waits_for_another_then_its_own_row_does_not_end_it",
    ),
    Mutant(
        "waiting behind a long queue",
        "a job that aborts waits until its time-out, because the rows that it reads of a long queue do not say that others come before it",
        breaks="liveness",
        patches=(Patch(abandoned_queue, "_is_all_that_counts", returning(True)),),
        killed_by=f"{ABORTING_BEHIND_A_QUEUE_TESTS}::test_given_one_in_line_behind_the_first_rows_then_all_that_abort_behind_him_end_at_once",
    ),
    Mutant(
        "word kept",
        "jobs that wait for a busy limit keep every word of another one, and stop it for all",
        breaks="liveness",
        patches=(Patch(limit_coordinator, "returned_grants", returning([])),),
        killed_by=f"{STANDING_ASIDE_TESTS}::test_given_jobs_that_wait_for_a_busy_limit_beside_a_rate_then_others_have_the_rate_as_long_as_it_has_room[16]",
    ),
    Mutant(
        "nobody's turn",
        "whoever stands aside is passed for as long as others come",
        breaks="liveness",
        patches=(Patch(limit_coordinator, "in_line", instead(without_those_aside)),),
        killed_by="unit/tidegate_core/admission/test_limit_coordinator.py::test_given_jobs_that_stand_aside_then_slots_are_for_the_first_of_them_and_for_the_others[the only one keeps its turn]",
    ),
    Mutant(
        "aside for ever",
        "a job with the word for its last limit does not come back for what it has handed back",
        breaks="liveness",
        patches=(Patch(limit_queue_entry, "_in_turn", around(staying_aside)),),
        killed_by=f"{STANDING_ASIDE_TESTS}::test_given_a_job_that_has_handed_a_place_back_then_it_comes_back_for_it_with_the_last_word",
    ),
    Mutant(
        "row brought back",
        "a job writes a row that it has seen, and that its home has taken away since: the queue is closed with it in there",
        breaks="order",
        patches=(Patch(UnitOfWork, "put", around(writing_rows_blindly)),),
        killed_by="unit/tidegate_core/shard/limits/test_limit_queue_entry.py::test_given_a_row_that_its_home_takes_away_at_the_same_time_then_it_is_not_brought_back_without_a_mark[True]",
    ),
)
