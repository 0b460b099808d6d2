"""From submission to the end of a run: every state against everything that may be observed (DESIGN 6)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tidegate_core.decisions.run_plane.run_news import outbox_row
from tidegate_core.decisions.run_plane.runs import (
    SUBMIT_TRIES_MAX,
    UNKNOWN_HOST_MS,
    LookAtRun,
    MarkLost,
    MarkSubmitted,
    RejectRun,
    RequestCancel,
    RunGone,
)
from tidegate_core.decisions.work import Decision
from tidegate_core.effects import DUPLICATE, Cancel, Gone, Notice, Submitted
from tidegate_core.records.run_plane import LedgerRow, OutboxRow, OwnLimit, Run
from tidegate_core.store import keys
from tidegate_core.store.values import Transaction
from tidegate_core.transactions.gate import finish_run, start_run
from tidegate_core.transactions.limits import Permit, take_permit
from tidegate_testkit.builders import MINUTE, NOW, a_job, a_run
from tidegate_testkit.desk import Desk

ID = a_run().id
SHARED = keys.shared_limit("flights", "program", "p")


def a_desk(run: Run) -> Desk:
    """The run with its job, an own permit and a shared one."""
    desk = Desk(a_job(1, state="pending_launch"), OwnLimit(namespace="flights", name="nightly", holders=(ID, "other")))
    own = keys.own_limit(0, "flights", "nightly")
    limits = tuple(f"{key.pk}|{key.sk}" for key in (own, SHARED))
    desk.lay(replace(run, limits=limits))
    desk.store.transact(Transaction("before", take_permit(Permit(SHARED, ID), 3), "p", None))
    return desk


def run_of(desk: Desk) -> Run | None:
    return desk.record(Run, keys.run(0, ID))


def outcome(desk: Desk) -> str:
    """The state of the open run, or how it ended: `<disposition>/<state>`."""
    run = run_of(desk)
    if run is not None:
        return run.state
    ledger = desk.records(LedgerRow, "L#")
    return f"{ledger[0].disposition}/{ledger[0].state}" if ledger else "gone without a trace"


def gone(desk: Desk) -> None:
    desk.decide(RunGone(0, ID, 1, Gone(137)), NOW + 10)


def look(desk: Desk) -> None:
    desk.decide(LookAtRun(0, ID, lambda run: None), NOW + 10)


def look_too_late(desk: Desk) -> None:
    desk.decide(LookAtRun(0, ID, lambda run: None), NOW + 16 * MINUTE)


def submitted(desk: Desk) -> None:
    desk.decide(MarkSubmitted(0, ID, 1, Submitted("ext", "host", "boot"), "node-1"), NOW + 10)


def rejected(desk: Desk) -> None:
    desk.decide(RejectRun(0, ID, 1, "config", "no such file"), NOW + 10)


def lost(desk: Desk) -> None:
    desk.decide(MarkLost(0, ID, 1), NOW + 10)


def cancelled(desk: Desk) -> None:
    desk.decide(RequestCancel(0, ID), NOW + 10)


OBSERVATIONS: list[Callable[[Desk], None]] = [gone, look, look_too_late, submitted, rejected, lost, cancelled]
STATES = {
    "submitting": a_run(state="submitting"),
    "submitted": a_run(state="submitted", external_id="ext"),
    "running": a_run(state="running", external_id="ext"),
    "cancel asked": a_run(state="running", external_id="ext", cancel_requested=True),
    "lost": a_run(state="lost", external_id="ext"),
    "reported": a_run(state="running", external_id="ext", ended_at=NOW + 5, outcome="succeeded", outputs='{"rows":3}'),
    "reported while lost": a_run(state="lost", external_id="ext", ended_at=NOW + 5, outcome="failed"),
}
EXPECTED = {
    "submitting": ["submitting", "submitting", "launched/failed", "submitted", "launched/failed", "launched/failed", "cancelled/closed"],
    "submitted": ["submitting", "submitted", "launched/failed", "submitted", "launched/failed", "launched/failed", "cancelled/closed"],
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
    run: Run, observation: Callable[[Desk], None], expected: str
) -> None:
    desk = a_desk(run)
    observation(desk)
    assert outcome(desk) == expected


@pytest.mark.parametrize(("run", "observation", "expected"), PAIRS)
def test_given_the_same_observation_again_then_nothing_more_happens(
    run: Run, observation: Callable[[Desk], None], expected: str
) -> None:
    desk = a_desk(run)
    observation(desk)
    before = (list(desk.store.items()), list(desk.store.items("history")))
    observation(desk)
    assert (list(desk.store.items()), list(desk.store.items("history"))) == before


@pytest.mark.parametrize(("run", "observation", "expected"), PAIRS)
def test_given_any_observation_then_permits_are_back_exactly_when_the_run_has_ended(
    run: Run, observation: Callable[[Desk], None], expected: str
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
    ended = desk.store.peek(keys.ended_run(0, ID)) or {}
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
    observation: Callable[[Desk], None], asked: bool
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
        desk.decide(RunGone(0, ID, attempt, Gone(1)), NOW)
        run = run_of(desk)
        assert run is not None
        assert 0 < run.not_before - NOW <= min(5_000 << (attempt - 1), 300_000)
    desk.decide(RunGone(0, ID, SUBMIT_TRIES_MAX, Gone(1)), NOW)
    assert outcome(desk) == "launched/failed"


@pytest.mark.parametrize("error_class", ["config", "auth", "user_code"])
def test_given_a_death_before_the_gate_that_will_repeat_then_there_is_no_further_attempt(error_class: str) -> None:
    desk = a_desk(STATES["submitted"])
    desk.decide(RunGone(0, ID, 1, Gone(1, error_class, "no such module")), NOW)
    assert outcome(desk) == "launched/failed"
    ended = desk.store.peek(keys.ended_run(0, ID)) or {}
    assert (ended["error_class"], ended["reason"]) == (error_class, "no such module")


@pytest.mark.parametrize(
    "decision",
    [
        RunGone(0, ID, 1, Gone(1)),
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
def test_given_news_of_a_run_that_is_over_then_nothing_is_written(observation: Callable[[Desk], None]) -> None:
    desk = Desk()
    observation(desk)
    assert list(desk.store.items("history")) == []
    assert desk.records(Run, "R#") == []


# -- races with the gate --------------------------------------------------------------------------------------------------------


def race(decision: Decision, report: Transaction, run: Run, now: int = NOW + 16 * MINUTE) -> Desk:
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
        LookAtRun(0, ID, lambda run: None),
        RequestCancel(0, ID),
        RunGone(0, ID, 1, Gone(1)),
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
    desk = race(RunGone(0, ID, 1, Gone(1)), report, STATES["running"])
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
    desk.decide(LookAtRun(0, ID, seen.append), NOW + 10)
    assert [run.state for run in seen] == ["running"]


# -- copies on several hosts ----------------------------------------------------------------------------------------------------

NOTHING_FOUND = Gone(None, message="nothing of it is left")


@pytest.mark.parametrize(
    ("run", "end"),
    [
        pytest.param(
            a_run(state="running", external_id="ext", host="b"), Gone(79, DUPLICATE), id="refused at the gate"
        ),
        pytest.param(a_run(state="lost", external_id="ext", host="b"), Gone(79, DUPLICATE), id="the same, lost"),
        pytest.param(a_run(state="running"), NOTHING_FOUND, id="started, and nobody wrote down where"),
    ],
)
def test_given_the_end_of_what_is_not_the_driver_then_the_run_goes_on_until_the_driver_reports(
    run: Run, end: Gone
) -> None:
    """I4: the program runs on a host that this node cannot see, so its permits are held."""
    desk = a_desk(run)
    desk.decide(RunGone(0, ID, 1, end), NOW + 10)
    found = run_of(desk)
    assert found is not None
    assert (found.state, found.ended_at, found.external_id, found.host) == (run.state, None, None, None)
    assert (desk.store.peek(SHARED) or {})["in_use"] == 1
    desk.store.transact(finish_run(ID, 1, "driver-1", "succeeded", 0, None, None, None, NOW + 30, "t"))
    look(desk)
    assert outcome(desk) == "launched/succeeded"
    assert (desk.store.peek(SHARED) or {})["in_use"] == 0


def a_driver_and_another_copy(driver_host: str | None) -> Desk:
    """The launcher of host `a` did not come to say that it had started the attempt, so that of host `b` was asked."""
    desk = a_desk(STATES["submitting"])
    desk.decide(MarkSubmitted(0, ID, 1, Submitted("tg@b", "b", "boot"), "node-b"), NOW + 1)
    desk.store.transact(start_run(ID, 1, "driver-1", NOW + 2, "t", host=driver_host))
    return desk


@pytest.mark.parametrize("host", [None, "b"])
@pytest.mark.parametrize(
    "end", [Gone(79, DUPLICATE), Gone(1, "transient"), Gone(75, "transient"), Gone(78, "config"), Gone(None), Gone(0)]
)
def test_given_the_end_of_another_hosts_copy_then_the_run_goes_on_however_that_ended(
    end: Gone, host: str | None
) -> None:
    """I4. It waited for the gate, and died there without having been answered."""
    desk = a_driver_and_another_copy("a")
    for _ in range(2):
        desk.decide(RunGone(0, ID, 1, end, host=host), NOW + 3)
        found = run_of(desk)
        assert found is not None
        assert (found.state, found.ended_at, found.external_id, found.host) == ("running", None, None, "a")
        assert (desk.store.peek(SHARED) or {})["in_use"] == 1


@pytest.mark.parametrize("end", [Gone(79, DUPLICATE), Gone(1, "transient"), Gone(None)])
def test_given_the_end_of_the_copy_that_passed_the_gate_then_the_run_has_ended_whatever_its_code(end: Gone) -> None:
    """A user's program may exit with the wrapper's code for a duplicate."""
    desk = a_driver_and_another_copy("b")
    desk.decide(RunGone(0, ID, 1, end), NOW + 3)
    assert outcome(desk) == "launched/failed"
    assert (desk.store.peek(SHARED) or {})["in_use"] == 0


def test_given_the_owner_on_the_drivers_host_then_that_copy_is_the_runs_and_its_end_counts() -> None:
    desk = a_driver_and_another_copy("a")
    desk.decide(MarkSubmitted(0, ID, 1, Submitted("tg@a", "a", "boot"), "node-a"), NOW + 3)
    desk.decide(MarkSubmitted(0, ID, 1, Submitted("tg@b", "b", "boot"), "node-b"), NOW + 4)
    run = run_of(desk)
    assert run is not None
    assert (run.external_id, run.host, run.node) == ("tg@a", "a", "node-a")
    desk.decide(RunGone(0, ID, 1, Gone(1), host="a"), NOW + 5)
    assert outcome(desk) == "launched/failed"


def test_given_a_start_before_another_hosts_copy_is_known_then_that_copy_is_not_the_runs() -> None:
    desk = a_desk(STATES["submitting"])
    desk.store.transact(start_run(ID, 1, "driver-1", NOW + 2, "t", host="a"))
    desk.decide(MarkSubmitted(0, ID, 1, Submitted("tg@b", "b", "boot"), "node-b"), NOW + 3)
    run = run_of(desk)
    assert run is not None
    assert (run.external_id, run.program_host) == (None, "a")


def test_given_a_cancel_where_the_driver_is_on_another_host_then_only_its_end_there_ends_the_run() -> None:
    desk = a_driver_and_another_copy("a")
    cancelled(desk)
    out_of_reach = Notice("cancel_out_of_reach", {"run_id": ID, "attempt": 1, "host": "a"})
    assert desk.told == [Cancel(ID, 1), out_of_reach]
    desk.decide(RunGone(0, ID, 1, Gone(143, "transient"), host="b"), NOW + 11)
    assert outcome(desk) == "running"
    desk.decide(RunGone(0, ID, 1, Gone(143, "transient"), host="a"), NOW + 12)
    assert outcome(desk) == "launched/killed"


def test_given_a_driver_that_nobody_can_ask_then_it_is_lost_after_the_probe_gap() -> None:
    desk = a_desk(a_run(state="running", external_id="ext", host="b"))
    desk.decide(RunGone(0, ID, 1, Gone(79, DUPLICATE)), NOW + 10)
    desk.decide(LookAtRun(0, ID, lambda run: None), NOW + UNKNOWN_HOST_MS)
    assert outcome(desk) == "running"
    desk.decide(LookAtRun(0, ID, lambda run: None), NOW + 1 + UNKNOWN_HOST_MS)
    assert outcome(desk) == "lost"
    assert (desk.store.peek(SHARED) or {})["in_use"] == 1


def test_given_a_refusal_at_the_gate_of_an_attempt_that_has_not_passed_it_then_it_is_tried_again() -> None:
    """Cannot be, and is safe: the transaction that makes the next attempt closes this one."""
    desk = a_desk(STATES["submitted"])
    desk.decide(RunGone(0, ID, 1, Gone(79, DUPLICATE)), NOW + 10)
    run = run_of(desk)
    assert run is not None
    assert (run.attempt, run.state) == (2, "submitting")


# -- outputs --------------------------------------------------------------------------------------------------------------------


def test_given_half_a_character_in_stored_outputs_then_the_end_can_be_sent_on_all_the_same() -> None:
    """A file name that is not UTF-8 reads as one in Python. Whoever let it in: it must not stop the shard."""
    out = outbox_row(replace(STATES["reported"], outputs='{"file":"\udcff.parquet"}'))
    assert json.loads(out.fact)["outputs"] == json.loads(out.record)["outputs"] == {"file": "?.parquet"}
