"""A lie for each rule that one changed fact breaks: about starts, stops, dead letters, answers, messages and suspended scopes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest

from tests.simulation.checks.case import Case
from tests.simulation.checks.events import check_events
from tests.simulation.checks.evidence import check_evidence
from tests.simulation.checks.fires import check_fires
from tests.simulation.checks.messages import check_messages
from tests.simulation.checks.receipts import check_answers
from tests.simulation.checks.recurring_messages import check_recurring
from tests.simulation.checks.retries import check_retries
from tests.simulation.checks.runs import check_runs
from tests.simulation.checks.scope_suspension import check_controls
from tests.simulation.checks.stops import check_stops
from tests.simulation.checks.timed_suspensions import check_ends
from tests.simulation.checks.upstream_deletion import check_upstreams
from tests.simulation.users.requests import Asked
from tests.simulation.world.cluster import RUNS, RUNS_DLQ
from tests.simulation.world.observations import Body, ReceiptSeen, UpstreamSeen
from tests.simulation.world.timeline import START
from tests.unit.support.simulation.checks.lying import MINUTE_MS, found, one_of, with_rows
from tests.unit.support.simulation.checks.steps import a_step

Attempts: TypeAlias = Callable[[Body], list[Body]]


def a_body(case: Case) -> Body:
    return case.bodies_by_run[one_of(case, "tick", "time").job_id][0]


def with_attempts(case: Case, attempts: list[Body]) -> Case:
    lie = Case(case.world)
    lie.bodies_by_run = {**case.bodies_by_run, attempts[0].run_id: attempts}
    return lie


def further(body: Body, **changes: Any) -> Body:
    """Returns the program of the next attempt, which starts when this one has ended."""
    return replace(body, **{"attempt": body.attempt + 1, "start": (body.end or body.start) + 1, **changes})


@pytest.mark.parametrize(
    ("attempts", "problem"),
    [
        pytest.param(lambda body: [body, further(body, attempt=1)], "started after attempt 1", id="the same attempt"),
        pytest.param(lambda body: [body, further(body, start=body.start)], "attempt 1 had ended", id="side by side"),
        pytest.param(lambda body: [body, further(body)], "attempt 1 has succeeded", id="behind a success"),
        pytest.param(
            lambda body: [replace(body, outcome="failed", error_class="config"), further(body)],
            "has failed for good",
            id="behind an error for good",
        ),
    ],
)
def test_given_a_further_attempt_that_should_not_be_then_it_is_found(
    case: Case, attempts: Attempts, problem: str
) -> None:
    assert found(check_runs(with_attempts(case, attempts(a_body(case)))), "I2", problem)


@pytest.mark.parametrize(
    ("changes", "invariant", "problem"),
    [
        pytest.param(None, "I1", "started and has no entry", id="no entry"),
        pytest.param({"disposition": "skipped", "reason": "because"}, "I1", "its program started", id="skipped"),
        pytest.param({"started_at": None}, "I2", "without having passed the gate", id="never at the gate"),
    ],
)
def test_given_a_program_that_its_entry_does_not_explain_then_it_is_found(
    case: Case, changes: dict[str, Any] | None, invariant: str, problem: str
) -> None:
    row = one_of(case, "tick", "time")
    lie = with_rows(case, lambda each: each if each != row else None if changes is None else replace(row, **changes))
    assert found(check_runs(lie), invariant, row.job_id, problem)


@pytest.mark.parametrize(("error_class", "problem"), [(None, "has one, and is"), ("config", "has failed for good")])
def test_given_a_dead_letter_of_a_run_that_wants_none_then_it_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch, error_class: str | None, problem: str
) -> None:
    body, topics = a_body(case), case.world.cluster.broker.topics
    record = next(each for log in topics[RUNS].logs for each in log)
    letter = record._replace(key=body.run_id.encode())
    monkeypatch.setattr(topics[RUNS_DLQ], "logs", [[letter], *topics[RUNS_DLQ].logs[1:]])
    lie = with_attempts(case, [replace(body, outcome="failed", error_class=error_class)])
    assert found(check_retries(lie), "dead letters", body.run_id, problem)


def test_given_a_start_behind_the_answer_of_a_suspend_then_it_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = a_body(case)
    monkeypatch.setattr(case, "steps", lambda _: [a_step("suspend", body.start - MINUTE_MS, mode="freeze")])
    assert found(check_stops(case), "I7", body.run_id, "started after suspend")


@pytest.mark.parametrize(
    ("how", "admitted_after", "is_wrong"),
    [("finish_admitted", -1, False), ("finish_admitted", 1, True), ("restart", -1, True)],
)
def test_given_a_start_behind_an_update_then_only_a_run_that_was_admitted_may_finish_as_admitted(
    case: Case, monkeypatch: pytest.MonkeyPatch, how: str, admitted_after: int, *, is_wrong: bool
) -> None:
    body = a_body(case)
    step = a_step("apply", body.start - MINUTE_MS)
    step = replace(step, kept_from=99, asked=replace(step.asked, document={**step.asked.document, "on_update": how}))
    monkeypatch.setattr(case, "steps", lambda _: [step])
    lie = with_rows(
        case,
        lambda row: replace(row, admitted_at=step.done + admitted_after) if row.job_id == body.run_id else row,
    )
    monkeypatch.setattr(lie, "steps", lambda _: [step])
    assert found(check_stops(lie), "I7", body.run_id, "started after apply") is is_wrong


def test_given_a_start_behind_the_answer_of_a_cancel_then_it_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = a_body(case)
    receipt = ReceiptSeen(body.start - 1_000, {"status": "cancelled"})
    cancel = Asked({"id": "c", "type": "run.cancel", "run_id": body.run_id}, START, appended=[START], receipt=receipt)
    monkeypatch.setitem(case.world.requests.asked, "c", cancel)
    assert found(check_stops(case), "I7", body.run_id, "was answered cancelled")


def test_given_an_answer_that_the_requests_before_it_do_not_explain_then_it_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = a_step("apply", START)
    wrong = replace(step, asked=replace(step.asked, receipt=ReceiptSeen(START + 10, {"status": "not_found"})))
    monkeypatch.setattr(case, "steps", lambda life: [wrong] if life.name == "tick" else [])
    assert found(check_answers(case), "answers", "was answered not_found, not accepted")


def test_given_two_answers_of_a_request_that_differ_then_it_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    request_id = next(
        each for each, asked in case.world.requests.asked.items() if asked.document["type"] == "schedule.apply"
    )
    seen = case.record.receipts[request_id]
    other = replace(seen[0], body={**seen[0].body, "status": "unchanged"})
    monkeypatch.setitem(case.record.receipts, request_id, [*seen, other])
    assert found(check_answers(case), "answers", request_id, "accepted and unchanged")


def test_given_a_second_entry_of_an_instant_then_it_is_found(case: Case) -> None:
    row = one_of(case, "tick", "time")
    lie = Case(case.world)
    lie.rows = [*case.rows, replace(row, job_id=f"{row.job_id}-again")]
    assert found(check_fires(lie), "I1", "tick", "has 2 entries")


def test_given_a_second_entry_of_evidence_then_it_is_found(case: Case) -> None:
    row = one_of(case, "count", "events")
    lie = Case(case.world)
    lie.rows = [*case.rows, row]
    assert found(check_evidence(lie), "I1", row.job_id, "has 2 entries")


def test_given_a_program_that_was_told_of_what_its_evidence_lacks_then_it_is_found(case: Case) -> None:
    row = one_of(case, "count", "events")
    case.entries_of["count"][row.job_id] = []
    assert found(check_events(case), "I3", row.job_id, "its evidence is []")


def test_given_two_programs_that_were_told_of_one_event_then_it_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    (body,) = case.bodies_by_run[one_of(case, "count", "events").job_id]
    monkeypatch.setattr(case.record, "bodies", [*case.record.bodies, replace(body, run_id="another")])
    assert found(check_events(case), "I3", "2 programs of count were told of")


@pytest.mark.parametrize(
    ("answered", "invariant", "problem"),
    [
        pytest.param(MINUTE_MS, "I8", "its cancel c was answered cancelled", id="answered behind the send"),
        pytest.param(-1, "I7", "after it was acknowledged as cancelled (c)", id="sent behind the answer"),
    ],
)
def test_given_a_message_that_was_sent_and_whose_cancel_was_answered_cancelled_then_it_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch, answered: int, invariant: str, problem: str
) -> None:
    letters = case.world.senders.letters
    sent = next(each for each in case.record.deliveries if each.message in letters)
    receipt = ReceiptSeen(sent.sent.at + answered, {"status": "cancelled"})
    cancel = Asked({"id": "c", "type": "message.cancel"}, START, appended=[START], receipt=receipt)
    monkeypatch.setattr(letters[sent.message], "ended", cancel)
    assert found(check_messages(case), invariant, sent.message, problem)


@pytest.mark.parametrize(
    ("nominal", "clock", "invariant", "problem"),
    [
        pytest.param(0, -1, "I8", "1 ms early", id="early"),
        pytest.param(1, 1, "I1", "no such version was due then", id="not due"),
    ],
)
def test_given_a_recurring_message_that_should_not_be_sent_so_then_it_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch, nominal: int, clock: int, invariant: str, problem: str
) -> None:
    first = next(each for each in case.record.deliveries if each.message.startswith("ping/"))
    sent = replace(first.sent, clock=first.nominal + clock)
    monkeypatch.setattr(case.record, "deliveries", [replace(first, nominal=first.nominal + nominal, sent=sent)])
    assert found(check_recurring(case), invariant, "ping", problem)


@pytest.mark.parametrize(
    ("invariant", "problem"),
    [
        ("answers", "not unchanged"),
        ("answers", "not accepted"),
        ("I7", "started while all of its namespace was suspended"),
        ("I7", "while its namespace was suspended"),
        ("I7", "was made of an instant at which it was suspended"),
        ("I3", "which came while it was suspended"),
    ],
)
def test_given_a_scope_that_is_suspended_all_the_time_then_each_thing_that_went_on_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch, invariant: str, problem: str
) -> None:
    rejected = ReceiptSeen(START + 10, {"status": "rejected"})
    begin = Asked({"id": "c", "type": "control.suspend"}, START, appended=[START], receipt=rejected)
    user = SimpleNamespace(repeats=[begin], spans=[SimpleNamespace(begin=begin, end=None)])
    monkeypatch.setattr(case.world, "controllers", [user])
    case.wide = SimpleNamespace(surely=lambda *_: True)  # type: ignore[assignment]
    assert found(check_controls(case), invariant, problem)


@pytest.mark.parametrize("problem", ["which nobody had deleted", "goes on without count"])
def test_given_a_schedule_that_goes_without_another_one_that_is_there_then_it_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    seen = UpstreamSeen("tick", "count", 0, 1, ended=False, done=None, running=())
    monkeypatch.setattr(case.record, "upstreams", {"x": seen})
    assert found(check_upstreams(case), "I1", "tick", problem)


def test_given_a_schedule_that_waits_for_one_that_was_deleted_then_it_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = next(each for each in case.lives if each.name == "tick")
    trigger = {"type": "run_status", "schedule": "count", "states": ["succeeded"]}
    count = next(each for each in case.lives if each.name == "count")
    case.lives = [replace(life, definition=replace(life.definition, trigger=trigger)), count]
    segments = [replace(each, end=None) for each in case.segments(life)]
    deleted = a_step("delete", case.world.ended_at)
    monkeypatch.setattr(case, "segments", lambda _: segments)
    monkeypatch.setattr(case, "steps", lambda each: [deleted] if each.name == "count" else [])
    assert found(check_upstreams(case), "I1", "tick still waits for count")


@pytest.mark.parametrize(
    ("resumed", "is_asked_for", "invariant", "problem"),
    [
        pytest.param(None, True, "liveness", "is so at rest", id="it never ends"),
        pytest.param(-MINUTE_MS, False, "I7", "went on 60000 ms before that", id="it ends by itself too early"),
        pytest.param(5 * MINUTE_MS, True, "I1", "nothing came of it", id="it ends much too late"),
    ],
)
def test_given_a_suspension_that_does_not_end_when_it_is_to_then_it_is_found(
    case: Case,
    monkeypatch: pytest.MonkeyPatch,
    resumed: int | None,
    is_asked_for: bool,
    invariant: str,
    problem: str,
) -> None:
    until = START + 10_000
    steps = [a_step("suspend", START - 2 * MINUTE_MS, mode="hold", until=until)]
    if resumed is not None:
        end = a_step("resume", until + resumed)
        steps.append(replace(end, is_asked_for=is_asked_for, counts_from=(until, until)))
    monkeypatch.setattr(case, "steps", lambda life: steps if life.name == "tick" else [])
    assert found(check_ends(case), invariant, "tick", problem)


def test_given_the_calm_world_then_none_of_these_checks_objects(case: Case) -> None:
    checks: tuple[Callable[[Case], Iterable[str]], ...] = (check_controls, check_ends, check_upstreams, check_stops)
    assert [problem for check in checks for problem in check(case)] == []
