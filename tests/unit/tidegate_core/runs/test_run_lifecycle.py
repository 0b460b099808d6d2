"""From submission to the end of a run: every state against everything that may be observed (DESIGN 6)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.builders import MINUTE, NOW, a_job, a_run
from tests.support.ended_runs import ended_row
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.harness.run_bench import (
    ID,
    SHARED,
    STATES,
    a_desk,
    cancelled,
    look,
    outcome,
    run_of,
)
from tidegate_core.engine.decision import Decision
from tidegate_core.rows.effects import Cancel, ProgramEnded, Submitted
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.run import OutboxRow, Run
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.runs.run_events import outbox_row
from tidegate_core.runs.run_lifecycle import (
    SUBMIT_TRIES_MAX,
    AttemptEnded,
    CheckRun,
    MarkFound,
    MarkLost,
    MarkSubmitted,
    RejectRun,
    RequestCancel,
)
from tidegate_core.writes.start_gate import finish_run, start_run


def gone(desk: DecisionHarness) -> None:
    desk.decide(AttemptEnded(0, ID, 1, ProgramEnded(137)), NOW + 10)


def look_too_late(desk: DecisionHarness) -> None:
    desk.decide(CheckRun(0, ID, lambda run: None), NOW + 16 * MINUTE)


def submitted(desk: DecisionHarness) -> None:
    desk.decide(MarkSubmitted(0, ID, 1, Submitted("ext", "host", "boot"), "node-1"), NOW + 10)


def rejected(desk: DecisionHarness) -> None:
    desk.decide(RejectRun(0, ID, 1, "config", "no such file"), NOW + 10)


def lost(desk: DecisionHarness) -> None:
    desk.decide(MarkLost(0, ID, 1), NOW + 10)


OBSERVATIONS: list[Callable[[DecisionHarness], None]] = [
    gone,
    look,
    look_too_late,
    submitted,
    rejected,
    lost,
    cancelled,
]
EXPECTED = {
    "submitting": ["submitting", "submitting", "launched/failed", "submitted", "launched/failed", "submitting", "cancelled/closed"],
    "submitted": ["submitting", "submitted", "launched/failed", "submitted", "launched/failed", "submitting", "cancelled/closed"],
    "running": ["launched/failed", "running", "running", "running", "running", "lost", "running"],
    "cancel asked": ["launched/killed", "running", "running", "running", "running", "lost", "running"],
    "lost": ["launched/failed", "lost", "lost", "lost", "lost", "lost", "lost"],
    "reported": ["launched/succeeded", "launched/succeeded", "launched/succeeded", "running", "running", "running", "running"],
    "reported while lost": ["launched/failed", "launched/failed", "launched/failed", "lost", "lost", "lost", "lost"],
}  # fmt: skip
PAIRS = [
    pytest.param(STATES[state], observation, expected, id=f"{state}, {observation.__name__}")
    for state, row in EXPECTED.items()
    for observation, expected in zip(OBSERVATIONS, row, strict=True)
]


@pytest.mark.parametrize(("run", "observation", "expected"), PAIRS)
def test_given_a_state_and_an_observation_then_the_outcome(
    run: Run, observation: Callable[[DecisionHarness], None], expected: str
) -> None:
    desk = a_desk(run)
    observation(desk)
    assert outcome(desk) == expected


@pytest.mark.parametrize(("run", "observation", "expected"), PAIRS)
def test_given_the_same_observation_again_then_nothing_more_happens(
    run: Run, observation: Callable[[DecisionHarness], None], expected: str
) -> None:
    desk = a_desk(run)
    observation(desk)
    before = (list(desk.store.items()), list(desk.store.items("history")))
    observation(desk)
    assert (list(desk.store.items()), list(desk.store.items("history"))) == before


@pytest.mark.parametrize(("run", "observation", "expected"), PAIRS)
def test_given_any_observation_then_permits_are_back_exactly_when_the_run_has_ended(
    run: Run, observation: Callable[[DecisionHarness], None], expected: str
) -> None:
    """I4: a lost run keeps its permits until it is observed."""
    desk = a_desk(run)
    observation(desk)
    (own,) = desk.records(OwnLimit, "LIM#")
    shared = desk.store.peek(SHARED) or {}
    ended = run_of(desk) is None
    assert own.holders == (("other",) if ended else (ID, "other"))
    assert shared["in_use"] == (0 if ended else 1)
    assert (desk.store.peek(a_job().key(0)) is None) == ended


def test_given_an_end_then_ledger_history_and_outbox_say_the_same() -> None:
    desk = a_desk(STATES["reported"])
    look(desk)
    (ledger,), (out,) = desk.records(LedgerRow, "L#"), desk.records(OutboxRow, "Z#")
    ended = ended_row(desk.store.peek, ID) or {}
    assert (ledger.state, ended["state"], out.state) == ("succeeded", "succeeded", "succeeded")
    fact, record = json.loads(out.fact), json.loads(out.record)
    assert fact["run_id"] == record["run_id"] == ID
    assert fact["outputs"] == record["outputs"] == {"rows": 3}
    assert record["id"] == f"{ID}/1/succeeded"
    assert (out.matched, out.page) == (False, "")


@pytest.mark.parametrize(
    ("observation", "asked"),
    [
        pytest.param(cancelled, True, id="closed: the process must go"),
        pytest.param(look_too_late, True, id="start time-out: the process must go"),
        pytest.param(rejected, False, id="never was there"),
    ],
)
def test_given_an_end_before_the_gate_then_the_launcher_is_told_where_something_may_be_left(
    observation: Callable[[DecisionHarness], None], asked: bool
) -> None:
    desk = a_desk(STATES["submitted"])
    observation(desk)
    assert (Cancel(ID, 1) in desk.told) == asked


def test_given_a_cancel_of_a_running_run_then_the_launcher_is_told_and_the_end_is_awaited() -> None:
    desk = a_desk(STATES["running"])
    cancelled(desk)
    assert desk.told == [Cancel(ID, 1)]
    run = run_of(desk)
    assert run is not None
    assert run.cancel_requested
    gone(desk)
    assert outcome(desk) == "launched/killed"
    assert desk.records(LedgerRow, "L#")[0].detail == "cancelled"


# -- attempts before the gate -------------------------------------------------------------------------------------------------


def test_given_a_death_before_the_gate_then_one_transaction_closes_the_attempt_and_makes_the_next() -> None:
    desk = a_desk(STATES["submitted"])
    gone(desk)
    run = run_of(desk)
    assert run is not None
    assert (run.attempt, run.state, run.external_id, run.host) == (2, "submitting", None, None)
    assert NOW + 10 < run.not_before <= NOW + 10 + 5_000
    assert run.start_by > run.not_before
    old = start_run(ID, 1, "late driver", NOW + 20, "t")
    desk.store.transact(old)
    assert run_of(desk) == run


def test_given_deaths_before_the_gate_then_pauses_grow_and_the_last_one_ends_it() -> None:
    desk = a_desk(STATES["submitted"])
    for attempt in range(1, SUBMIT_TRIES_MAX):
        desk.decide(AttemptEnded(0, ID, attempt, ProgramEnded(1)), NOW)
        run = run_of(desk)
        assert run is not None
        assert 0 < run.not_before - NOW <= min(5_000 << (attempt - 1), 300_000)
    desk.decide(AttemptEnded(0, ID, SUBMIT_TRIES_MAX, ProgramEnded(1)), NOW)
    assert outcome(desk) == "launched/failed"


@pytest.mark.parametrize("error_class", ["config", "auth", "user_code"])
def test_given_a_death_before_the_gate_that_will_repeat_then_there_is_no_further_attempt(error_class: str) -> None:
    desk = a_desk(STATES["submitted"])
    desk.decide(AttemptEnded(0, ID, 1, ProgramEnded(1, error_class, "no such module")), NOW)
    assert outcome(desk) == "launched/failed"
    ended = ended_row(desk.store.peek, ID) or {}
    assert (ended["error_class"], ended["reason"]) == (error_class, "no such module")


@pytest.mark.parametrize(
    "decision",
    [
        AttemptEnded(0, ID, 1, ProgramEnded(1)),
        MarkSubmitted(0, ID, 1, Submitted("ext", "h", "b"), "n"),
        RejectRun(0, ID, 1, "config", "x"),
        MarkLost(0, ID, 1),
    ],
    ids=lambda each: type(each).__name__,
)
def test_given_news_of_an_older_attempt_then_the_present_one_is_left_alone(decision: Decision) -> None:
    desk = a_desk(a_run(attempt=2))
    assert desk.decide(decision) is None


@pytest.mark.parametrize("observation", OBSERVATIONS, ids=lambda each: str(each.__name__))
def test_given_news_of_a_run_that_is_over_then_nothing_is_written(
    observation: Callable[[DecisionHarness], None],
) -> None:
    desk = DecisionHarness()
    observation(desk)
    assert list(desk.store.items("history")) == []
    assert desk.records(Run, "R#") == []


# -- races with the gate --------------------------------------------------------------------------------------------------------


def race(decision: Decision, report: Transaction, run: Run, now: int = NOW + 16 * MINUTE) -> DecisionHarness:
    """Prepares the owner's decision, lets the report come first, then commits the decision."""
    desk = a_desk(run)
    transaction, _ = desk.prepare(decision, now)
    assert transaction is not None
    desk.store.transact(report)
    desk.store.transact(transaction)
    return desk


@pytest.mark.parametrize(
    "decision",
    [
        CheckRun(0, ID, lambda run: None),
        RequestCancel(0, ID),
        AttemptEnded(0, ID, 1, ProgramEnded(1)),
        RejectRun(0, ID, 1, "config", ""),
    ],
    ids=lambda each: type(each).__name__,
)
def test_given_a_program_that_passes_the_gate_first_then_the_owners_end_is_refused(decision: Decision) -> None:
    """I7: the run item is the one place where they meet; whoever writes first wins."""
    desk = race(decision, start_run(ID, 1, "d-1", NOW, "t"), STATES["submitted"])
    run = run_of(desk)
    assert run is not None
    assert (run.state, run.driver) == ("running", "d-1")


def test_given_an_end_that_is_reported_first_then_the_observed_one_does_not_replace_it() -> None:
    report = finish_run(ID, 1, "driver-1", "succeeded", 0, None, None, None, NOW + 3, "t")
    desk = race(AttemptEnded(0, ID, 1, ProgramEnded(1)), report, STATES["running"])
    gone(desk)
    assert outcome(desk) == "launched/succeeded"


def test_given_a_submission_known_after_the_program_started_then_its_state_stays() -> None:
    desk = a_desk(a_run(state="running"))
    submitted(desk)
    run = run_of(desk)
    assert run is not None
    assert (run.state, run.external_id, run.host, run.boot_id, run.node) == ("running", "ext", "host", "boot", "node-1")


def test_given_a_look_at_a_run_that_goes_on_then_its_state_is_told() -> None:
    seen: list[Any] = []
    desk = a_desk(STATES["running"])
    desk.decide(CheckRun(0, ID, seen.append), NOW + 10)
    assert [run.state for run in seen] == ["running"]


# -- outputs --------------------------------------------------------------------------------------------------------------------


def test_given_half_a_character_in_stored_outputs_then_the_end_can_be_sent_on_all_the_same() -> None:
    """A file name that is not UTF-8 reads as one in Python. Whoever let it in: it must not stop the shard."""
    out = outbox_row(replace(STATES["reported"], outputs='{"file":"\udcff.parquet"}'))
    assert json.loads(out.fact)["outputs"] == json.loads(out.record)["outputs"] == {"file": "?.parquet"}


def test_given_a_program_that_is_lost_again_while_the_first_loss_is_on_its_way_then_it_is_lost() -> None:
    """Found in review: the word that it is came to nothing until that row had gone."""
    desk = a_desk(STATES["running"])
    lost(desk)
    desk.decide(MarkFound(0, ID, 1))
    assert outcome(desk) == "running"
    lost(desk)
    assert outcome(desk) == "lost"
    assert len(desk.records(OutboxRow, "Z#")) == 1
