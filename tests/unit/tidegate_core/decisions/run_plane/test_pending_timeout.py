"""Jobs that have waited as long as their schedule allows: abort, force, alert (SEMANTICS 7.7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate_core.decisions.run_plane.admit import AdmitNext
from tidegate_core.effects import Notice
from tidegate_core.records.run_plane import Job, LedgerRow, OwnLimit, Run
from tidegate_testkit.builders import HOUR, NOW, Doc, a_definition, a_job, a_schedule, a_spec, at_most
from tidegate_testkit.desk import Desk

REF = "flights/nightly"
CLOSED = {"type": "time_window", "opens": "12:00", "closes": "13:00"}
SOFT: list[Doc] = [
    CLOSED,
    {"type": "delay", "after": "9h"},
    {"type": "since_last_run", "at_least": "9h"},
    {"type": "rate", "max": 1, "per": "9h"},
]
DEADLINE = NOW + HOUR


def a_desk(action: str, *constraints: Doc, jobs: int = 1, **more: Any) -> Desk:
    spec = a_spec(constraints=list(constraints), pending_timeout="10h", pending_timeout_action=action, **more)
    waiting = [a_job(number, deadline=DEADLINE) for number in range(1, jobs + 1)]
    return Desk(a_definition(spec), a_schedule(), *waiting)


def look(desk: Desk, now: int) -> list[Run]:
    desk.decide(AdmitNext(REF, desk.memory, lambda goes_on: None, most=1), now)
    return desk.records(Run, "R#")


def the_job(desk: Desk) -> Job:
    job = desk.record(Job, a_job(1).key(0))
    assert job is not None
    return job


def test_given_abort_then_the_entry_of_the_ledger_names_all_that_was_unmet() -> None:
    """CD-040."""
    desk = a_desk("abort", CLOSED, {"type": "delay", "after": "9h"})
    assert look(desk, DEADLINE) == []
    (row,) = desk.records(LedgerRow, "L#")
    assert (row.disposition, row.reason) == ("expired", "constraint_timeout")
    assert json.loads(row.detail or "{}")["codes"] == ["window_closed", "delayed"]


@pytest.mark.parametrize("constraint", SOFT, ids=lambda each: each["type"])
def test_given_force_then_the_job_goes_at_its_deadline_whatever_else_is_unmet(constraint: Doc) -> None:
    """OQ-07."""
    desk = a_desk("force", constraint, jobs=2, overlap="allow")
    look(desk, NOW)
    before = len(desk.records(Run, "R#"))
    look(desk, DEADLINE - 1)
    assert len(desk.records(Run, "R#")) == before < 2
    assert desk.memory.next_wake() == DEADLINE
    look(desk, DEADLINE)
    run = look(desk, DEADLINE)[-1]
    assert len(desk.records(Run, "R#")) == 2
    assert json.loads(run.forced or "{}")["codes"]


def test_given_force_and_a_full_limit_then_the_job_waits_for_it_and_for_nothing_else() -> None:
    desk = a_desk("force", CLOSED, at_most(1))
    desk.lay(OwnLimit(namespace="flights", name="nightly", holders=("0000-other",)))
    assert look(desk, DEADLINE) == []
    assert json.loads(the_job(desk).unmet or "{}")["codes"] == ["concurrency"]
    assert desk.decide(AdmitNext(REF, desk.memory, lambda goes_on: None), DEADLINE + 1) is None
    wake = desk.memory.next_wake()
    assert wake is not None
    assert wake > DEADLINE + 100 * HOUR, "only the permit wakes it up"
    desk.lay(OwnLimit(namespace="flights", name="nightly"))
    (run,) = look(desk, DEADLINE + 2)
    assert json.loads(run.forced or "{}")["codes"] == ["window_closed"]


def test_given_force_when_all_holds_then_nothing_was_forced() -> None:
    (run,) = look(a_desk("force"), DEADLINE)
    assert run.forced is None


def test_given_alert_then_it_is_told_once_and_the_job_waits_on() -> None:
    desk = a_desk("alert", CLOSED)
    look(desk, DEADLINE)
    (told,) = [each for each in desk.told if isinstance(each, Notice)]
    assert (told.event, told.fields["job"], told.fields["schedule"]) == ("job_waits_too_long", a_job(1).id, REF)
    assert "12:00-13:00" in str(told.fields["unmet"])
    assert the_job(desk).alerted is True
    assert desk.decide(AdmitNext(REF, desk.memory, lambda goes_on: None), DEADLINE + 1) is None
    assert desk.told == []
    opens = json.loads(the_job(desk).unmet or "{}")["until"]
    assert desk.memory.next_wake() == opens
    assert len(look(desk, opens)) == 1
