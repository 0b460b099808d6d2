"""`run.release` against each state of a run, and against what else is said of it at that moment (DESIGN 6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.builders import NOW, a_run
from tests.support.ended_runs import ended_row
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.harness.run_bench import ID, SHARED, STATES, a_desk, outcome, run_of
from tidegate_core.commands.request_answer import Outcome
from tidegate_core.commands.run_commands import ReleaseRun
from tidegate_core.engine.decision import Decision
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import RunRelease
from tidegate_core.language.values.problems import Problem
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Notice, ProgramEnded, Submitted
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.rows.store_operations import Value
from tidegate_core.runs.run_lifecycle import AttemptEnded, MarkFound, MarkSubmitted
from tidegate_core.writes.start_gate import finish_run, report_outputs, start_run

LOST = replace(STATES["lost"], started_at=NOW, driver="driver-1")


def a_release(desk: DecisionHarness, **fields: str | None) -> tuple[ReleaseRun, Outcome]:
    request = RunRelease(run_id=ID, actor="ana", reason="its host was scrapped").model_copy(update=fields)
    told = Outcome("subject")
    return ReleaseRun(0, request, "it", told, desk.memory), told


def released(desk: DecisionHarness, **fields: str | None) -> Receipt:
    decision, told = a_release(desk, **fields)
    desk.decide(decision, NOW + 10)
    assert told.receipt is not None
    return told.receipt


@pytest.mark.parametrize(
    ("state", "status", "ends"),
    [
        ("submitting", "rejected", "submitting"),
        ("submitted", "rejected", "submitted"),
        ("running", "rejected", "running"),
        ("cancel asked", "rejected", "running"),
        ("lost", "accepted", "launched/failed"),
        ("reported", "too_late", "launched/succeeded"),
        ("reported while lost", "too_late", "launched/failed"),
    ],
)
def test_given_a_state_then_only_a_lost_run_is_released_and_permits_are_back_exactly_when_it_has_ended(
    state: str, status: str, ends: str
) -> None:
    desk = a_desk(STATES[state])
    receipt = released(desk)
    assert (receipt.status, receipt.id, outcome(desk)) == (status, ID, ends)
    (own,) = desk.records(OwnLimit, "LIM#")
    over = run_of(desk) is None
    assert own.holders == (("other",) if over else (ID, "other"))
    assert (desk.store.peek(SHARED) or {})["in_use"] == (0 if over else 1)


@pytest.mark.parametrize("state", ["submitting", "submitted", "running"])
def test_given_an_open_run_that_is_not_lost_then_the_answer_says_its_state_and_what_to_do(state: str) -> None:
    receipt = released(a_desk(STATES[state]))
    hint = "only a run that is lost is released; end this one with run.cancel (tidegate run cancel)"
    assert receipt.errors == (Problem("run_id", f"the run is {state}", hint),)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        pytest.param({}, "released by ana: its host was scrapped", id="who and why"),
        pytest.param({"reason": None}, "released by ana", id="who"),
        pytest.param({"actor": None}, "released: its host was scrapped", id="why"),
        pytest.param({"actor": None, "reason": None}, "released", id="neither"),
    ],
)
def test_given_a_release_then_ledger_history_and_log_say_that_it_was_and_by_whom(
    said: dict[str, None], reason: str
) -> None:
    desk = a_desk(LOST)
    released(desk, **said)
    (ledger,) = desk.records(LedgerRow, "L#")
    row = ended_row(desk.store.peek, ID)
    assert row is not None
    ended = from_item(Run, row)
    assert (ledger.detail, ended.reason, ended.error_class) == (reason, reason, "lost")
    fields: dict[str, Value] = {"run_id": ID, "schedule": ended.ref, "attempt": 1, "reason": reason}
    assert [each for each in desk.told if isinstance(each, Notice) and each.event == "run_released"] == [
        Notice("run_released", fields)
    ]


def test_given_a_lost_run_that_was_to_be_cancelled_then_it_ends_as_killed() -> None:
    desk = a_desk(replace(LOST, cancel_requested=True))
    assert released(desk).status == ReceiptStatus.ACCEPTED
    assert outcome(desk) == "launched/killed"
    assert desk.records(LedgerRow, "L#")[0].detail == "released by ana: its host was scrapped"


@pytest.mark.parametrize("is_over", [False, True])
def test_given_another_namespace_then_nothing_is_found_and_nothing_is_told_of_the_run(is_over: bool) -> None:
    desk = a_desk(LOST)
    if is_over:
        released(desk)
    receipt = released(desk, namespace="others")
    assert (receipt.status, receipt.namespace, receipt.name) == ("not_found", "others", None)
    assert (run_of(desk) is None) == is_over


def test_given_a_run_that_is_not_there_then_it_is_not_found() -> None:
    assert released(DecisionHarness()).status == ReceiptStatus.NOT_FOUND


def test_given_a_run_that_was_released_before_then_another_release_is_too_late() -> None:
    desk = a_desk(LOST)
    released(desk)
    again = released(desk)
    assert (again.status, again.name) == ("too_late", LOST.name)
    assert len(desk.records(LedgerRow, "L#")) == 1


# -- a driver that lives after all ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("further", [False, True], ids=["the run has ended", "a further attempt has passed the gate"])
def test_given_a_driver_that_lives_after_all_then_its_reports_are_refused(further: bool) -> None:
    """I2: the gate and the reports go by the attempt and its driver."""
    desk = a_desk(LOST)
    released(desk)
    if further:
        desk.lay(a_run(attempt=2, state="running", driver="driver-2"))
    before = desk.store.peek(keys.run(0, ID))
    for report in (
        start_run(ID, 1, "driver-1", NOW + 20, "t-1"),
        report_outputs(ID, 1, "driver-1", "{}", 1, "t-2"),
        finish_run(ID, 1, "driver-1", "succeeded", 0, None, None, None, NOW + 20, "t-3"),
    ):
        desk.store.transact(report)
    assert desk.store.peek(keys.run(0, ID)) == before


@pytest.mark.parametrize("further", [False, True], ids=["the run has ended", "a further attempt is made"])
@pytest.mark.parametrize(
    "decision",
    [
        MarkFound(0, ID, 1),
        MarkSubmitted(0, ID, 1, Submitted("ext", "host", "boot"), "node-1"),
        AttemptEnded(0, ID, 1, ProgramEnded(0)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_given_a_launcher_that_finds_it_later_then_nothing_changes(decision: Decision, further: bool) -> None:
    desk = a_desk(LOST)
    released(desk)
    if further:
        desk.lay(a_run(attempt=2, state="submitting"))
    assert desk.decide(decision, NOW + 20) is None


# -- what is said of it between the read and the write --------------------------------------------------------------------------


def test_given_an_end_that_is_reported_first_then_it_counts_and_the_answer_says_too_late() -> None:
    desk = a_desk(LOST)
    decision, told = a_release(desk)
    transaction, _ = desk.prepare(decision, NOW + 10)
    assert transaction is not None
    desk.store.transact(finish_run(ID, 1, "driver-1", "succeeded", 0, None, None, None, NOW + 5, "t"))
    desk.store.transact(transaction)
    assert desk.store.peek(keys.receipt(0, None, "it")) is None
    assert outcome(desk) == "lost"
    desk.decide(decision, NOW + 11)
    assert told.receipt is not None
    assert (told.receipt.status, outcome(desk)) == ("too_late", "launched/succeeded")


def test_given_a_program_that_is_found_first_then_it_runs_on_and_the_answer_says_so() -> None:
    desk = a_desk(LOST)
    decision, told = a_release(desk)
    transaction, _ = desk.prepare(decision, NOW + 10)
    assert transaction is not None
    desk.decide(MarkFound(0, ID, 1), NOW + 9)
    desk.store.transact(transaction)
    assert outcome(desk) == "running"
    desk.decide(decision, NOW + 11)
    assert told.receipt is not None
    assert (told.receipt.status, told.receipt.errors[0].problem) == ("rejected", "the run is running")
    assert outcome(desk) == "running"
