"""One transaction in the making: overlay reads, what each write consumes, what one transaction may hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import NOW, a_job
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, ScopeSuspensions
from tidegate_core.rows.store_operations import (
    ACTIONS_PLANNED_MAX,
    TRANSACTION_BYTES_PLANNED_MAX,
    Action,
    Applied,
    Check,
    Delete,
    Item,
    Key,
    Put,
    Transaction,
)
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.writes import conditions
from tidegate_core.writes.limit_permits import Permit, take_permit
from tidegate_core.writes.read_cache import View
from tidegate_core.writes.unit_of_work import AlreadyThere, NotAtHand, TooLarge, UnitOfWork
from tidegate_memory.store import MemoryStore

LIMIT = keys.shared_limit("flights", "program", "p")


@pytest.fixture
def view() -> View:
    return View(0)


@pytest.fixture
def unit(view: View) -> UnitOfWork:
    return UnitOfWork(view, 0, 7, ScopeSuspensions(version=3))


def stored(job: Job, revision: int = 4) -> Item:
    return {**to_item(job, job.key(0)), "rev": revision, "w": "before"}


def knows(view: View, *jobs: Job) -> None:
    view.learn([job.key(0) for job in jobs], {job.key(0): stored(job) for job in jobs})


def actions(unit: UnitOfWork) -> dict[Key, object]:
    unit.keep()
    return {action.key: action for action in unit.transaction("test", "tok").actions}


# -- reading --------------------------------------------------------------------------------------------------------------


def test_given_an_unread_item_then_the_decision_is_told_what_to_read(unit: UnitOfWork) -> None:
    with pytest.raises(NotAtHand) as missing:
        unit.record(Job, a_job().key(0))
    assert missing.value.keys == (a_job().key(0),)


def test_given_several_unread_items_then_one_read_brings_them_all(unit: UnitOfWork, view: View) -> None:
    knows(view, a_job(2))
    with pytest.raises(NotAtHand) as missing:
        unit.items([a_job(1).key(0), a_job(2).key(0), a_job(3).key(0)])
    assert missing.value.keys == (a_job(1).key(0), a_job(3).key(0))


def test_given_writes_of_this_and_of_kept_decisions_then_reads_see_them(unit: UnitOfWork, view: View) -> None:
    knows(view, a_job(1), a_job(2))
    unit.put(a_job(1, state="pending_launch"), a_job(1).key(0))
    unit.keep()
    unit.delete(a_job(2).key(0))
    assert unit.record(Job, a_job(1).key(0)) == a_job(1, state="pending_launch")
    assert unit.record(Job, a_job(2).key(0)) is None
    unit.drop()
    assert unit.record(Job, a_job(2).key(0)) == a_job(2)


def test_given_an_unread_range_then_the_decision_is_told_so(unit: UnitOfWork) -> None:
    with pytest.raises(NotAtHand) as missing:
        unit.range("J#", "J#~")
    assert missing.value.ranges == (("J#", "J#~"),)


def test_given_a_range_then_staged_puts_and_deletes_are_merged_in_order(unit: UnitOfWork, view: View) -> None:
    jobs = sorted((a_job(number) for number in range(1, 5)), key=lambda job: job.id)
    view.learn_range("J#", "J#~", [stored(jobs[0]), stored(jobs[2])])
    knows(view, jobs[2])
    unit.put_new(jobs[1], jobs[1].key(0))
    unit.keep()
    unit.delete(jobs[2].key(0))
    unit.put_new(jobs[3], jobs[3].key(0))
    unit.put_new(TimerRow(at=1, kind="S", ref="x"), keys.timer(0, 1, "S", "x"))
    found = [item["id"] for item in unit.range("J#", "J#~")]
    assert found == [jobs[0].id, jobs[1].id, jobs[3].id]


# -- what a write consumes --------------------------------------------------------------------------------------------------


def test_given_any_transaction_then_the_lease_is_checked_first(unit: UnitOfWork, view: View) -> None:
    knows(view, a_job())
    unit.delete(a_job().key(0))
    unit.keep()
    first = unit.transaction("test", "tok").actions[0]
    assert first == Check(keys.lease(0), conditions.holds_lease(7, 3))


def test_given_a_known_item_then_the_write_is_on_the_revision_seen(unit: UnitOfWork, view: View) -> None:
    knows(view, a_job(1), a_job(2))
    unit.put(a_job(1, attempt=2), a_job(1).key(0))
    unit.delete(a_job(2).key(0))
    made = actions(unit)
    put = made[a_job(1).key(0)]
    assert isinstance(put, Put)
    assert put.condition == conditions.unchanged(4)
    assert (put.item["rev"], put.item["w"], put.item["attempt"]) == (5, "tok", 2)
    assert made[a_job(2).key(0)] == Delete(a_job(2).key(0), conditions.unchanged(4))


def test_given_an_item_known_to_be_absent_then_the_write_demands_that(unit: UnitOfWork, view: View) -> None:
    view.learn([a_job().key(0)], {})
    unit.put(a_job(), a_job().key(0))
    put = actions(unit)[a_job().key(0)]
    assert isinstance(put, Put)
    assert put.condition == conditions.absent()
    assert put.item["rev"] == 1


def test_given_a_new_key_then_no_read_is_needed_and_its_absence_is_demanded(unit: UnitOfWork) -> None:
    unit.put_new(a_job(), a_job().key(0))
    put = actions(unit)[a_job().key(0)]
    assert isinstance(put, Put)
    assert put.condition == conditions.absent()


def test_given_a_new_key_that_is_known_to_be_used_then_an_invariant_broke(unit: UnitOfWork, view: View) -> None:
    knows(view, a_job())
    with pytest.raises(AlreadyThere):
        unit.put_new(a_job(), a_job().key(0))


def test_given_timer_rows_then_neither_put_nor_delete_has_a_condition(unit: UnitOfWork, view: View) -> None:
    here, there = TimerRow(at=NOW, kind="S", ref="a/b"), TimerRow(at=NOW + 1, kind="S", ref="a/b")
    view.learn([here.key(0)], {here.key(0): {**to_item(here, here.key(0)), "rev": 9}})
    unit.set_row(there, there.key(0))
    unit.forget_row(here.key(0))
    made = actions(unit)
    put = made[there.key(0)]
    assert isinstance(put, Put)
    assert put.condition is None
    assert made[here.key(0)] == Delete(here.key(0))


def test_given_an_item_made_and_deleted_within_then_the_store_never_hears_of_it(unit: UnitOfWork, view: View) -> None:
    knows(view, a_job(2))
    unit.put_new(a_job(1), a_job(1).key(0))
    unit.delete(a_job(1).key(0))
    unit.delete(a_job(2).key(0))
    assert set(actions(unit)) == {keys.lease(0), a_job(2).key(0)}


def test_given_absent_items_then_deleting_them_is_nothing(unit: UnitOfWork, view: View) -> None:
    view.learn([a_job().key(0)], {})
    unit.delete(a_job().key(0))
    unit.keep()
    assert unit.is_empty


def test_given_a_requirement_on_an_item_that_is_written_anyway_then_there_is_one_action(
    unit: UnitOfWork, view: View
) -> None:
    knows(view, a_job())
    unit.require(a_job().key(0), conditions.schedule_is("active", 1))
    unit.require(a_job().key(0), conditions.schedule_is("active", 1))
    unit.put(a_job(), a_job().key(0))
    made = unit_actions(unit)
    assert [type(action) for action in made if action.key == a_job().key(0)] == [Put]


def unit_actions(unit: UnitOfWork) -> tuple[Action, ...]:
    unit.keep()
    return unit.transaction("test", "tok").actions


def test_given_a_requirement_on_something_else_then_it_is_a_check(unit: UnitOfWork, view: View) -> None:
    knows(view, a_job(1))
    unit.require(keys.schedule_state(0, "a", "b"), conditions.schedule_is("active", 1))
    unit.put(a_job(1), a_job(1).key(0))
    assert isinstance(actions(unit)[keys.schedule_state(0, "a", "b")], Check)


def test_given_a_put_then_it_is_the_witness(unit: UnitOfWork, view: View) -> None:
    knows(view, a_job(1))
    unit.delete(a_job(1).key(0))
    unit.put_new(a_job(2), a_job(2).key(0))
    unit.keep()
    assert unit.transaction("test", "tok").witness == a_job(2).key(0)


# -- several decisions ----------------------------------------------------------------------------------------------------


def test_given_two_actions_with_conditions_on_one_item_then_the_second_belongs_into_the_next(unit: UnitOfWork) -> None:
    unit.apply(*take_permit(Permit(LIMIT, "r-1"), 2))
    unit.keep()
    with pytest.raises(TooLarge):
        unit.apply(*take_permit(Permit(LIMIT, "r-2"), 2))


def test_given_a_decision_too_many_then_it_is_dropped_and_the_others_stay(unit: UnitOfWork) -> None:
    for number in range(ACTIONS_PLANNED_MAX - 5):
        unit.put_new(a_job(number), a_job(number).key(0))
    unit.keep()
    for number in range(1_000, 1_006):
        unit.put_new(a_job(number), a_job(number).key(0))
    unit.after(lambda: pytest.fail("carried out"))
    with pytest.raises(TooLarge):
        unit.keep()
    assert len(unit.writes) == ACTIONS_PLANNED_MAX - 5
    assert unit.effects == []


def test_given_a_key_that_the_view_lost_meanwhile_then_the_write_still_consumes_what_was_read(
    unit: UnitOfWork, view: View
) -> None:
    """A view holds so many items only, and another operation may have it forget one."""
    knows(view, a_job(1), a_job(2))
    unit.put(a_job(1, attempt=2), a_job(1).key(0))
    unit.delete(a_job(2).key(0))
    unit.put_new(a_job(3), a_job(3).key(0))
    view.forget([a_job(number).key(0) for number in (1, 2, 3)])
    made = actions(unit)
    put = made[a_job(1).key(0)]
    assert isinstance(put, Put)
    assert (put.condition, put.item["rev"]) == (conditions.unchanged(4), 5)
    assert made[a_job(2).key(0)] == Delete(a_job(2).key(0), conditions.unchanged(4))
    created = made[a_job(3).key(0)]
    assert isinstance(created, Put)
    assert created.condition == conditions.absent()
    void = unit.void("w")
    assert void is not None
    lease_check, consumes = void.actions
    assert lease_check == unit.transaction("control", "w").actions[0]
    assert (consumes.key, consumes.condition) == (a_job(1).key(0), conditions.unchanged(4))


def kept_until_full(unit: UnitOfWork, stage: Callable[[int], None]) -> int:
    """Returns how many decisions fitted."""
    for number in range(40):
        stage(number)
        try:
            unit.keep()
        except TooLarge:
            return number
    raise AssertionError("all of them fitted")


def a_large_job(number: int, characters: int, letter: str = "x") -> Job:
    return a_job(number, upstream=letter * characters)


@pytest.mark.parametrize(("letter", "size"), [("x", 1), ("é", 2), ("語", 3)])
def test_given_large_items_then_bytes_are_counted_and_the_rest_belongs_into_the_next(
    unit: UnitOfWork, letter: str, size: int
) -> None:
    kept = kept_until_full(
        unit, lambda number: unit.put_new(a_large_job(number, 100_000, letter), a_job(number).key(0))
    )
    assert (kept + 1) * 100_000 * size >= TRANSACTION_BYTES_PLANNED_MAX
    assert isinstance(MemoryStore().transact(_without_check(unit)), Applied)


def _without_check(unit: UnitOfWork) -> Transaction:
    whole = unit.transaction("test", "tok")
    return Transaction(whole.name, whole.actions[1:], whole.token, whole.witness)


def test_given_large_items_that_are_deleted_then_they_count_too(unit: UnitOfWork, view: View) -> None:
    """The store may count an item before and after."""
    knows(view, *(a_large_job(number, 350_000) for number in range(10)))
    assert kept_until_full(unit, lambda number: unit.delete(a_job(number).key(0))) == 8


def test_given_one_decision_that_is_larger_than_planned_then_it_goes_alone(unit: UnitOfWork) -> None:
    for number in range(10):
        unit.put_new(a_large_job(number, 350_000), a_job(number).key(0))
    unit.keep()
    assert len(unit.writes) == 10
    unit.put_new(a_job(11), a_job(11).key(0))
    with pytest.raises(TooLarge):
        unit.keep()


def test_given_a_decision_of_conditions_only_then_the_next_one_is_measured_with_it(unit: UnitOfWork) -> None:
    for number in range(60):
        unit.require(keys.schedule_state(0, "a", f"b{number}"), conditions.schedule_is("active", 1))
    unit.keep()
    for number in range(60):
        unit.put_new(a_job(number), a_job(number).key(0))
    with pytest.raises(TooLarge):
        unit.keep()


def test_given_a_dropped_decision_then_nothing_of_it_is_left(unit: UnitOfWork) -> None:
    unit.put_new(a_job(), a_job().key(0))
    unit.apply(*take_permit(Permit(LIMIT, "r"), 1))
    unit.after(lambda: None)
    unit.drop()
    unit.keep()
    assert unit.is_empty
    assert unit.effects == []


@given(shares=st.lists(st.integers(1, 60), max_size=8))
def test_given_any_decisions_then_what_is_kept_stays_below_the_stores_limit(shares: list[int]) -> None:
    unit = UnitOfWork(View(0), 0, 1, NO_SUSPENSIONS)
    numbers = iter(range(10_000))
    for share in shares:
        for _ in range(share):
            job = a_job(next(numbers))
            unit.put_new(job, job.key(0))
        try:
            unit.keep()
        except TooLarge:
            continue
    if not unit.is_empty:
        assert len(unit.transaction("test", "tok").actions) <= ACTIONS_PLANNED_MAX
