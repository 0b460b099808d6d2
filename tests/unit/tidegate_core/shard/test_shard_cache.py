"""What an owner keeps in memory derives from rows: order of waiting, timers in their window, holds and releases."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import NOW, a_job, a_run
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.shard_cache import ShardCache

REF = "flights/nightly"


def learn(memory: ShardCache, job: Job, *, gone: bool = False) -> None:
    memory.apply_row(job.key(0), None if gone else to_item(job, job.key(0)))


def arm(memory: ShardCache, at: int, name: str = "nightly") -> TimerRow:
    row = TimerRow(at=at, kind="S", ref=f"flights/{name}")
    memory.apply_row(row.key(0), to_item(row, row.key(0)))
    return row


def test_given_jobs_in_any_order_then_they_wait_in_the_order_of_their_satisfaction() -> None:
    memory = ShardCache(0)
    for number in (3, 1, 2):
        learn(memory, a_job(number))
    assert memory.waiting(REF) == [a_job(number).id for number in (1, 2, 3)]
    learn(memory, a_job(2, state="pending_launch"))
    learn(memory, a_job(1), gone=True)
    assert memory.waiting(REF) == [a_job(3).id]
    learn(memory, a_job(3), gone=True)
    assert memory.waiting_refs() == []


def test_given_timer_rows_beyond_the_horizon_then_they_are_not_kept() -> None:
    memory = ShardCache(0)
    memory.horizon = NOW + 10
    arm(memory, NOW + 11)
    assert memory.next_wake() is None
    row = arm(memory, NOW + 10)
    assert memory.next_wake() == NOW + 10
    assert memory.take_due(NOW + 9) == []
    assert memory.take_due(NOW + 10) == [row]
    assert memory.take_due(NOW + 10) == []


def test_given_a_timer_row_that_was_deleted_then_it_neither_wakes_nor_is_due() -> None:
    memory = ShardCache(0)
    memory.horizon = NOW + 10
    row = arm(memory, NOW)
    memory.apply_row(row.key(0), None)
    assert memory.next_wake() is None
    assert memory.take_due(NOW) == []


def test_given_the_same_timer_row_again_then_it_is_due_once() -> None:
    memory = ShardCache(0)
    memory.horizon = NOW + 10
    row = arm(memory, NOW)
    arm(memory, NOW)
    assert memory.take_due(NOW) == [row]


def test_given_held_schedules_then_each_is_looked_at_once_at_its_earliest_instant() -> None:
    memory = ShardCache(0)
    for until in (NOW + 9, NOW + 5, NOW + 5, NOW + 20):
        memory.hold(REF, until)
    assert memory.next_wake() == NOW + 5
    assert memory.take_held(NOW + 4) == []
    assert memory.take_held(NOW + 5) == [REF]
    assert memory.take_held(NOW + 20) == []
    assert memory.next_wake() is None
    memory.hold(REF, NOW + 30)
    assert memory.take_held(NOW + 30) == [REF]


def test_given_looks_before_something_is_due_then_the_two_are_told_apart() -> None:
    memory = ShardCache(0)
    memory.hold(REF, NOW + 10, due=NOW + 100)
    assert (memory.next_wake(), memory.next_due()) == (NOW + 10, NOW + 100)
    memory.hold(REF, NOW + 10, due=NOW + 50)
    assert memory.next_due() == NOW + 50
    assert memory.take_held(NOW + 10) == [REF]
    assert memory.next_due() is None


def test_given_a_look_a_second_then_what_is_remembered_does_not_grow() -> None:
    memory = ShardCache(0)
    for second in range(1_000):
        memory.hold(REF, NOW + 10_000_000)
        memory.hold(REF, NOW + second)
        memory.take_held(NOW + second)
    assert len(memory._hold_order) <= 2


def test_given_a_permit_that_is_back_then_those_who_wait_for_that_limit_are_named_once() -> None:
    memory = ShardCache(0)
    memory.hold("flights/b", NOW, ["limit"])
    memory.hold("flights/a", NOW, ["limit", "another"])
    memory.hold("flights/c", NOW, ["another"])
    assert memory.released("limit") == ["flights/a", "flights/b"]
    assert memory.released("limit") == []
    assert memory.released("another") == ["flights/a", "flights/c"]


def test_given_a_job_set_aside_then_those_behind_it_are_first_until_it_is_taken_back() -> None:
    memory = ShardCache(0)
    for number in (1, 2):
        learn(memory, a_job(number))
    memory.set_aside(a_job(1).id)
    assert memory.waiting(REF) == [a_job(2).id]
    memory.take_back(a_job(1).id)
    assert memory.waiting(REF) == [a_job(1).id, a_job(2).id]


def test_given_rows_of_the_history_then_they_are_ignored() -> None:
    memory = ShardCache(0)
    run = a_run()
    memory.apply_row(Key("SH#0000", f"R#{run.id}", "history"), to_item(run, run.key(0)))
    assert memory.runs == {}


@given(
    changes=st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from(["pending_constraint", "pending_launch", None])), max_size=20
    )
)
def test_given_any_changes_then_waiting_is_what_the_rows_say(changes: list[tuple[int, str | None]]) -> None:
    memory, rows = ShardCache(0), {}
    for number, state in changes:
        rows[number] = state
        learn(memory, a_job(number, state=state or "pending_constraint"), gone=state is None)
    waiting = [number for number, state in sorted(rows.items()) if state == "pending_constraint"]
    assert memory.waiting(REF) == [a_job(number).id for number in waiting]
    assert memory.waiting_refs() == ([REF] if waiting else [])


def test_given_a_row_that_is_left_then_no_look_at_the_rows_brings_it_back_before_the_controls_change() -> None:
    memory = ShardCache(0)
    memory.horizon = NOW + 10
    arm(memory, NOW)
    (row,) = memory.take_due(NOW)
    memory.leave(row)
    arm(memory, NOW)
    assert memory.next_wake() is None
    memory.requeue_deferred()
    assert memory.take_due(NOW) == [row]


def test_given_a_row_that_is_left_and_deleted_then_it_does_not_come_back() -> None:
    memory = ShardCache(0)
    memory.horizon = NOW + 10
    arm(memory, NOW)
    (row,) = memory.take_due(NOW)
    memory.leave(row)
    memory.apply_row(row.key(0), None)
    memory.requeue_deferred()
    assert memory.next_wake() is None
