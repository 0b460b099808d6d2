"""No job of a lower class holds up one of a higher class of its schedule, whatever the line (SEMANTICS 3.5, 7.3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import (
    HOUR,
    MINUTE,
    NOW,
    Doc,
    a_definition,
    a_job,
    a_position,
    a_run,
    a_schedule,
    a_spec,
    at_most,
)
from tests.support.harness.decision_harness import DecisionHarness, rows_of
from tidegate_core.admission.admit import AdmitNext
from tidegate_core.admission.overlap_rules import apply_policy, settle_parked, to_cancel
from tidegate_core.commands.request_answer import Outcome
from tidegate_core.commands.run_commands import TriggerNow
from tidegate_core.language.definitions.run_policies import Overlap
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.requests import ScheduleTrigger
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.shared_limit import QueueEntry
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.writes.limit_permits import Permit, take_permit

REF = "flights/nightly"
GROUP = keys.shared_limit("flights", "group", "g")
IN_GROUP = at_most(1, "group", group="g")
MISSED = a_job(1, due=NOW - 10 * MINUTE, catch_up=True)
ON_TIME = a_job(2, due=NOW)


def a_desk(*jobs: Job, specs: tuple[Doc, ...] = (), taken: bool = True, **state: Any) -> DecisionHarness:
    """Jobs of a schedule whose versions are `specs`; the only slot of the group is somebody else's."""
    versions = specs or (a_spec(priority="highest", constraints=[IN_GROUP]),)
    definitions = [a_definition(spec, version=number) for number, spec in enumerate(versions, start=1)]
    desk = DecisionHarness(*definitions, a_schedule(version=len(versions), **state), *jobs)
    if taken:
        desk.store.transact(Transaction("before", take_permit(Permit(GROUP, "0003-stranger"), 1), "p", None))
    return desk


def look(desk: DecisionHarness, now: int = NOW, times: int = 3) -> None:
    for _ in range(times):
        desk.decide(AdmitNext(REF, desk.memory, lambda goes_on: None), now)


def in_queue(desk: DecisionHarness) -> list[str]:
    """The jobs that stand in the group's queue, in its order."""
    return [row.job_id for row in rows_in_queue(desk)]


def rows_in_queue(desk: DecisionHarness) -> list[QueueEntry]:
    rows = [from_item(QueueEntry, item) for item in rows_of(desk.store, "IW#")]
    return sorted(rows, key=lambda row: row.key(0).sk)


def admitted(desk: DecisionHarness) -> list[str]:
    return [run.id for run in desk.records(Run, "R#")]


@pytest.mark.parametrize("overlap", ["queue", "keep_latest", "coalesce", "cancel_running", "skip"])
def test_given_a_missed_job_that_waits_for_a_busy_group_then_the_one_that_is_due_now_takes_its_place(
    overlap: str,
) -> None:
    desk = a_desk(MISSED, ON_TIME, specs=(a_spec(priority="highest", overlap=overlap, constraints=[IN_GROUP]),))
    look(desk)
    assert in_queue(desk) == [ON_TIME.id]


def test_given_allow_then_both_stand_in_the_queue_of_the_group_in_the_order_of_their_classes() -> None:
    desk = a_desk(MISSED, ON_TIME, specs=(a_spec(priority="highest", overlap="allow", constraints=[IN_GROUP]),))
    look(desk)
    assert in_queue(desk) == [ON_TIME.id, MISSED.id]


@pytest.mark.parametrize("priority", ["highest", "medium", "low", "lowest"])
def test_given_one_place_then_it_is_for_what_is_due_now_whatever_the_schedules_priority(priority: str) -> None:
    desk = a_desk(MISSED, ON_TIME, specs=(a_spec(priority=priority, constraints=[at_most(1)]),), taken=False)
    look(desk)
    assert admitted(desk) == [ON_TIME.id]


def test_given_a_run_by_hand_then_it_passes_what_was_missed_before() -> None:
    by_hand = a_job(2, trigger="manual")
    desk = a_desk(MISSED, by_hand)
    look(desk)
    assert in_queue(desk) == [by_hand.id]


@pytest.mark.parametrize("overlap", ["allow", "queue"])
def test_given_finish_old_then_a_job_of_a_low_former_version_holds_up_none_of_the_urgent_new_one(overlap: str) -> None:
    former = a_spec(priority="low", overlap=overlap, constraints=[IN_GROUP])
    urgent = a_spec(priority="highest", overlap=overlap, constraints=[IN_GROUP])
    old, new = a_job(1, due=NOW - HOUR), a_job(2, version=2, generation=2)
    desk = a_desk(old, new, specs=(former, urgent), generation=2, kept_from=1)
    look(desk)
    assert in_queue(desk)[0] == new.id
    assert desk.memory.waiting(REF) == [old.id, new.id]


def test_given_finish_old_and_one_class_then_first_come_is_first_served() -> None:
    versions = (a_spec(constraints=[at_most(1)]), a_spec(constraints=[at_most(1)], args=["new"]))
    old, new = a_job(1, due=NOW - HOUR), a_job(2, version=2, generation=2)
    desk = a_desk(new, old, specs=versions, generation=2, kept_from=1, taken=False)
    look(desk)
    assert admitted(desk) == [old.id]


def test_given_carry_to_an_urgent_version_then_waiting_jobs_take_its_class() -> None:
    versions = (a_spec(priority="low", constraints=[IN_GROUP]), a_spec(priority="highest", constraints=[IN_GROUP]))
    desk = a_desk(ON_TIME, specs=versions, carried=(1, 2))
    look(desk)
    (row,) = rows_in_queue(desk)
    assert row.order is not None
    assert row.order < NOW - 365 * 24 * HOUR  # Nobody ages into `highest`: its head start is of years.


def test_given_what_is_due_now_waits_for_its_delay_then_what_was_missed_goes_meanwhile() -> None:
    """Else a delay that is longer than the period would keep what was missed waiting for ever."""
    delayed = a_spec(priority="highest", constraints=[{"type": "delay", "after": "15m"}])
    desk = a_desk(MISSED, ON_TIME, specs=(delayed,), taken=False)
    look(desk, NOW + 6 * MINUTE)
    assert admitted(desk) == [MISSED.id]


def test_given_a_pending_time_out_that_forces_then_the_missed_job_asks_in_its_own_class_all_the_same() -> None:
    forcing = a_spec(priority="highest", constraints=[IN_GROUP], pending_timeout="1h", pending_timeout_action="force")
    late = a_job(1, due=NOW - 3 * HOUR, deadline=NOW - HOUR, catch_up=True, in_turn=True)
    desk = a_desk(late, ON_TIME, specs=(forcing,))
    look(desk)
    assert in_queue(desk) == [ON_TIME.id]


# -- which job remains, and of which class ----------------------------------------------------------------------------


@pytest.mark.parametrize("overlap", ["keep_latest", "cancel_running", "coalesce"])
@pytest.mark.parametrize("parked", [False, True], ids=["", "parked by hold"])
def test_given_a_missed_job_after_one_on_time_then_what_stands_for_both_is_on_time(
    overlap: Overlap, parked: bool
) -> None:
    spec = parse_schedule(a_spec(overlap=overlap))
    before, missed = a_job(1, due=NOW), a_job(2, due=NOW + 10 * MINUTE, catch_up=True)
    settled = settle_parked(spec, [before, missed]) if parked else apply_policy(spec, [before, missed], ())
    assert settled.kept is not None
    assert (settled.kept.id, settled.kept.catch_up, settled.kept.times_out) == (missed.id, None, True)


@pytest.mark.parametrize("overlap", ["keep_latest", "coalesce"])
def test_given_one_on_time_after_a_missed_job_then_it_waits_since_its_own_time(overlap: Overlap) -> None:
    """The waiting of a low job would give it a place before urgent jobs of others that wait since longer."""
    kept = apply_policy(parse_schedule(a_spec(overlap=overlap)), [ON_TIME, MISSED], ()).kept
    assert kept is not None
    assert (kept.id, kept.catch_up, kept.waits_since) == (ON_TIME.id, None, ON_TIME.satisfied_at)


def test_given_a_full_queue_that_rejects_then_what_was_missed_takes_no_place_of_what_is_due_now() -> None:
    spec = parse_schedule(a_spec(max_pending=2, on_overflow="reject"))
    missed = [a_job(number, due=NOW + number, catch_up=True) for number in (1, 2)]
    settled = apply_policy(spec, [*missed, a_job(3, due=NOW + 3)], ())
    assert [each.job.id for each in settled.ended] == [missed[-1].id]


def test_given_cancel_running_then_a_missed_job_ends_no_run_that_came_on_time_after_it() -> None:
    runs = {run.id: run for run in (a_run(2, state="running", nominal=NOW),)}
    assert to_cancel(MISSED, 1, list(runs), runs) == []
    assert to_cancel(a_job(3, due=NOW + 1), 1, list(runs), runs) == list(runs)


def test_given_a_queue_that_is_full_of_missed_jobs_then_a_run_by_hand_is_taken() -> None:
    missed = [a_job(number, due=NOW - HOUR + number, catch_up=True) for number in (1, 2)]
    desk = a_desk(*missed, specs=(a_spec(max_pending=2, constraints=[IN_GROUP]),))
    request = ScheduleTrigger(type="schedule.trigger", namespace="flights", name="nightly")
    outcome = Outcome(REF)
    desk.decide(TriggerNow(request, "r", a_position(), outcome, desk.memory), NOW)
    assert outcome.receipt is not None
    assert outcome.receipt.status is ReceiptStatus.ACCEPTED
