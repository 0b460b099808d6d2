"""Jobs that have waited as long as their schedule allows: abort, force, alert (SEMANTICS 7.7)."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from tests.support.builders import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    Doc,
    a_definition,
    a_job,
    a_request,
    a_run,
    a_schedule,
    a_spec,
    an_apply,
    at_most,
    every,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.admission.admit import AdmitNext
from tidegate_core.rows.effects import Commit, Notice, Read
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.rows.store_operations import Key
from tidegate_core.runs.run_completion import park_run
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS
from tidegate_core.writes import read_cache
from tidegate_core.writes.unit_of_work import UnitOfWork

REF = "flights/nightly"
CLOSED = {"type": "time_window", "opens": "12:00", "closes": "13:00"}
SOFT: list[Doc] = [
    CLOSED,
    {"type": "delay", "after": "9h"},
    {"type": "since_last_run", "at_least": "9h"},
    {"type": "rate", "max": 1, "per": "9h"},
]
DEADLINE = NOW + HOUR


def a_desk(action: str, *constraints: Doc, jobs: int = 1, **more: Any) -> DecisionHarness:
    spec = a_spec(constraints=list(constraints), pending_timeout="10h", pending_timeout_action=action, **more)
    waiting = [a_job(number, deadline=DEADLINE) for number in range(1, jobs + 1)]
    return DecisionHarness(a_definition(spec), a_schedule(), *waiting)


def look(desk: DecisionHarness, now: int) -> list[Run]:
    desk.decide(AdmitNext(REF, desk.memory, lambda goes_on: None, most=1), now)
    return desk.records(Run, "R#")


def the_job(desk: DecisionHarness) -> Job:
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


# -- outages -----------------------------------------------------------------------------------------------------------


def waits_through(desk: DecisionHarness, outage: Outage) -> None:
    """The outage is a fact, and is over."""
    desk.memory.outages_are((outage,))
    look(desk, outage.end)


@pytest.mark.parametrize("action", ["abort", "force", "alert"])
def test_given_an_outage_then_the_time_out_stands_still_in_it_and_the_job_wakes_up_when_it_is_over(action: str) -> None:
    """DESIGN 6, as of runs."""
    desk = a_desk(action, {"type": "time_window", "opens": "01:00", "closes": "02:00"})
    waits_through(desk, Outage(NOW + MINUTE, DEADLINE + 9 * HOUR))
    served = DEADLINE + 9 * HOUR + 59 * MINUTE
    assert desk.memory.next_wake() == served
    look(desk, served - 1)
    assert desk.records(Job, "J#")[0].alerted is None
    assert (desk.records(Run, "R#"), desk.ledger(), desk.told) == ([], [], [])
    look(desk, served)
    ended = [entry[1:] for entry in desk.ledger()], len(desk.records(Run, "R#")), len(desk.told)
    assert (
        ended
        == {
            "abort": ([("expired", "constraint_timeout")], 0, 1),
            "force": ([], 1, 0),
            "alert": ([], 0, 1),
        }[action]
    )


def test_given_an_outage_before_the_job_was_satisfied_then_its_time_out_is_as_long_as_ever() -> None:
    desk = a_desk("abort", CLOSED)
    waits_through(desk, Outage(NOW - 2 * HOUR, NOW - HOUR))
    look(desk, DEADLINE)
    assert [entry[1] for entry in desk.ledger()] == ["expired"]


@pytest.mark.parametrize(
    ("outage", "left"),
    [
        pytest.param(Outage(NOW + 5 * MINUTE, NOW + 25 * MINUTE), 20 * MINUTE, id="before the schedule stood still"),
        pytest.param(Outage(NOW + 3 * HOUR, NOW + 4 * HOUR), 0, id="while it stood still"),
        pytest.param(Outage(NOW + 20 * MINUTE, NOW + 2 * HOUR), 10 * MINUTE, id="it was stopped amid the outage"),
        pytest.param(Outage(NOW + 3 * HOUR, NOW + 5 * HOUR), 30 * MINUTE, id="it went on amid the outage"),
        pytest.param(Outage(NOW + 20 * MINUTE, NOW + 5 * HOUR), 40 * MINUTE, id="it stood still amid the outage"),
    ],
)
def test_given_an_outage_and_a_suspended_span_then_no_moment_of_both_counts_twice(outage: Outage, left: int) -> None:
    """`left`: what the outage adds to what the suspended span has added."""
    desk = a_desk("abort", CLOSED)
    desk.lay(a_schedule(stopped_ms=4 * HOUR, last_stops=(NOW + 30 * MINUTE, NOW + 270 * MINUTE)))
    waits_through(desk, outage)
    look(desk, max(DEADLINE + 4 * HOUR + left - 1, outage.end))
    assert desk.ledger() == []
    look(desk, DEADLINE + 4 * HOUR + left)
    assert [entry[1] for entry in desk.ledger()] == ["expired"]


def test_given_one_that_makes_up_for_the_past_then_only_an_outage_in_its_turn_counts() -> None:
    spec = a_spec(constraints=[CLOSED], pending_timeout="1h")
    job = a_job(1, deadline=NOW + 3 * HOUR, catch_up=True, in_turn=True, clock_start=NOW + 2 * HOUR)
    desk = DecisionHarness(a_definition(spec), a_schedule(), job)
    desk.memory.outages_are(
        (Outage(NOW + MINUTE, NOW + HOUR), Outage(NOW + 2 * HOUR + 10 * MINUTE, NOW + 2 * HOUR + 30 * MINUTE))
    )
    look(desk, NOW + 3 * HOUR + 20 * MINUTE - 1)
    assert desk.ledger() == []
    look(desk, NOW + 3 * HOUR + 20 * MINUTE)
    assert [entry[1] for entry in desk.ledger()] == ["expired"]


def test_given_one_on_time_that_stands_for_one_in_its_turn_then_an_outage_in_that_turn_counts() -> None:
    """Seed 63284026: the merged job had the deadline of the turn, and the younger place in the queue; the outage was before that place."""
    spec = a_spec(trigger=every("1h"), overlap="coalesce", constraints=[CLOSED], pending_timeout="1h")
    in_turn = a_job(1, deadline=NOW + 3 * HOUR, catch_up=True, in_turn=True, clock_start=NOW + 2 * HOUR)
    on_time = a_job(2, due=NOW + 160 * MINUTE, satisfied_at=NOW + 160 * MINUTE, deadline=NOW + 220 * MINUTE)
    desk = DecisionHarness(a_definition(spec), a_schedule(), in_turn, on_time)
    desk.memory.outages_are((Outage(NOW + 125 * MINUTE, NOW + 155 * MINUTE),))
    for _ in ("the merge", "the time-out"):
        look(desk, NOW + 3 * HOUR + 30 * MINUTE - 1)
    assert [entry[1] for entry in desk.ledger()] == ["coalesced"]
    look(desk, NOW + 3 * HOUR + 30 * MINUTE)
    assert [entry[1] for entry in desk.ledger()] == ["coalesced", "expired"]


def test_given_one_that_was_stopped_in_its_turn_then_an_outage_of_before_that_counts_as_well() -> None:
    spec = a_spec(constraints=[CLOSED], pending_timeout="1h")
    state = a_schedule(stopped_ms=HOUR, last_stops=(NOW + 150 * MINUTE, NOW + 210 * MINUTE))
    desk = DecisionHarness(
        a_definition(spec),
        state,
        a_job(1, deadline=NOW + 3 * HOUR, catch_up=True, in_turn=True, clock_start=NOW + 2 * HOUR),
    )
    desk.memory.outages_are((Outage(NOW + MINUTE, NOW + HOUR), Outage(NOW + 125 * MINUTE, NOW + 145 * MINUTE)))
    look(desk, NOW + 4 * HOUR + 20 * MINUTE - 1)
    assert desk.ledger() == []
    look(desk, NOW + 4 * HOUR + 20 * MINUTE)
    assert [entry[1] for entry in desk.ledger()] == ["expired"]


def test_given_several_suspended_spans_then_no_moment_of_an_outage_and_any_of_them_counts_twice() -> None:
    desk = a_desk("abort", CLOSED)
    spans = (NOW + 10 * MINUTE, NOW + 20 * MINUTE, NOW + 30 * MINUTE, NOW + 50 * MINUTE)
    desk.lay(a_schedule(stopped_ms=30 * MINUTE, last_stops=spans))
    waits_through(desk, Outage(NOW + 5 * MINUTE, NOW + 40 * MINUTE))
    left = 30 * MINUTE + 15 * MINUTE  # Of the outage the minutes 5 to 10 and 20 to 30 lie outside.
    look(desk, DEADLINE + left - 1)
    assert desk.ledger() == []
    look(desk, DEADLINE + left)
    assert [entry[1] for entry in desk.ledger()] == ["expired"]


def test_given_one_that_was_stopped_twice_in_its_turn_then_an_outage_of_before_both_counts_as_well() -> None:
    spec = a_spec(constraints=[CLOSED], pending_timeout="1h")
    spans = (NOW + 150 * MINUTE, NOW + 180 * MINUTE, NOW + 185 * MINUTE, NOW + 215 * MINUTE)
    desk = DecisionHarness(
        a_definition(spec),
        a_schedule(stopped_ms=HOUR, last_stops=spans),
        a_job(1, deadline=NOW + 3 * HOUR, catch_up=True, in_turn=True, clock_start=NOW + 2 * HOUR),
    )
    desk.memory.outages_are((Outage(NOW + MINUTE, NOW + HOUR), Outage(NOW + 125 * MINUTE, NOW + 145 * MINUTE)))
    look(desk, NOW + 4 * HOUR + 20 * MINUTE - 1)
    assert desk.ledger() == []
    look(desk, NOW + 4 * HOUR + 20 * MINUTE)
    assert [entry[1] for entry in desk.ledger()] == ["expired"]


def test_given_a_job_that_was_made_right_before_a_fall_then_it_goes_behind_the_outage() -> None:
    bench = ActorHarness(behaviour=Behaviour(runs_for=SECOND))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10s", end="2025-11-13T02:13:35Z"), pending_timeout="5m")))
    bench.hold_back(lambda each: isinstance(each, Commit) and each.transaction.name == "admit")
    bench.run(12 * SECOND)
    bench.away(10 * MINUTE)
    bench.run(5 * MINUTE)
    assert {entry[0] for entry in bench.ledger()} == {"launched"}


def test_given_one_behind_another_whose_time_out_passed_unseen_then_it_expires_though_nothing_holds_it_back_now() -> (
    None
):
    """Nobody looks at it while the first waits, whose turn, and time-out, came later (review)."""
    spec = a_spec(trigger=every("1h"), overlap="allow", constraints=[CLOSED], pending_timeout="1h")
    opens = NOW + 12 * HOUR - NOW % (12 * HOUR)
    assert opens % (24 * HOUR) == 12 * HOUR
    first = a_job(1, deadline=opens + 10 * MINUTE, catch_up=True, in_turn=True)
    second = a_job(2, due=opens - 2 * HOUR, deadline=opens - HOUR)
    desk = DecisionHarness(a_definition(spec), a_schedule(), first, second)
    for now in (opens - 90 * MINUTE, opens):
        desk.decide(AdmitNext(REF, desk.memory, lambda goes_on: None), now)
    assert [each.id for each in desk.records(Run, "R#")] == [first.id]
    assert [(row.job_id, row.reason) for row in desk.records(LedgerRow, "L#")] == [(second.id, "constraint_timeout")]


def test_given_a_gap_in_service_that_is_no_outage_then_who_could_go_does() -> None:
    desk = a_desk("abort")
    (run,) = look(desk, DEADLINE + OUTAGE_GRACE_MS - 1)
    assert run.id == a_job(1).id


@pytest.mark.parametrize("action", ["force", "alert"])
def test_given_a_job_that_has_waited_long_for_a_permit_then_it_runs_when_that_is_free(action: str) -> None:
    """What may be waived is no longer there, and nobody has to be told any more (review)."""
    bench = ActorHarness(behaviour=Behaviour(runs_for=2 * HOUR))
    bench.passes_over_routine = True
    bench.run(SECOND)
    spec = a_spec(trigger=every("100h"), overlap="queue", pending_timeout="1h", pending_timeout_action=action)
    bench.request(an_apply(spec))
    for number in (1, 2):
        bench.request(a_request("trigger", request_id=f"t-{number}"))
    bench.run(3 * HOUR)
    assert len(bench.started) == 2
    assert bench.notices("decision_failed") == []


class _Parked(NamedTuple):
    """The decision that makes a run a job again."""

    run: Run
    outages: tuple[Outage, ...]
    name: str = "park"
    about: str = REF
    stale: tuple[Key, ...] = ()

    def decide(self, unit: UnitOfWork, now: int) -> None:
        park_run(unit, self.run, now, self.outages)


def test_given_an_outage_while_it_was_launched_then_that_stands_still_once() -> None:
    """It waited 10 minutes, then came the launch, the outage, a suspend and its resume: 50 are left (review)."""
    spec = a_spec(constraints=[CLOSED], pending_timeout="1h")
    run = a_run(1, admitted_at=NOW + 10 * MINUTE)
    desk = DecisionHarness(a_definition(spec), a_schedule(), a_job(1, deadline=DEADLINE, state="pending_launch"), run)
    outages = (Outage(NOW + 20 * MINUTE, NOW + 4 * HOUR),)
    desk.memory.outages_are(outages)
    back = NOW + 4 * HOUR + MINUTE
    desk.decide(_Parked(run, outages), back)
    assert look(desk, back) == []
    assert desk.memory.next_wake() == back + 50 * MINUTE


# -- behind others ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("action", "outcome"), [("abort", "expired/constraint_timeout"), ("force", "launched")])
def test_given_a_job_behind_those_that_time_out_later_then_its_own_time_out_counts(action: str, outcome: str) -> None:
    """What was forced stands before it: asked for again and again, it kept the job from ever being looked at."""
    bench = ActorHarness(behaviour=Behaviour(starts_after=10, runs_for=SECOND))
    bench.run(SECOND)
    tomorrow = {"type": "time_window", "opens": "01:00", "closes": "02:00"}
    times_out = {"pending_timeout": "1h", "pending_timeout_action": action}
    bench.request(an_apply(a_spec(trigger=every("100h"), constraints=[tomorrow], overlap="queue", **times_out)))
    bench.request(a_request("trigger", request_id="first"))
    bench.run(50 * MINUTE)
    bench.request(a_request("trigger", request_id="second", force_overlap=True))
    bench.run(10 * MINUTE - 2 * SECOND)
    assert len(bench.rows("J#")) == 2
    bench.run(5 * SECOND)
    assert [entry[0] for entry in bench.ledger()] == [outcome]
    bench.run(50 * MINUTE)
    assert [entry[0] for entry in bench.ledger()] == [outcome] * 2


def test_given_an_update_that_shortens_the_time_out_then_what_it_carried_on_keeps_nobody_behind_it() -> None:
    bench = ActorHarness(behaviour=Behaviour(starts_after=10, runs_for=SECOND))
    bench.run(SECOND)
    tomorrow = {"type": "time_window", "opens": "01:00", "closes": "02:00"}
    for time_out in ("20h", "1h"):
        spec = a_spec(trigger=every("100h"), constraints=[tomorrow], overlap="queue", on_update="carry")
        bench.request(an_apply({**spec, "pending_timeout": time_out}, f"apply-{time_out}"))
        bench.request(a_request("trigger", request_id=f"now-{time_out}"))
        bench.run(SECOND)
    bench.crash()
    bench.passes_over_routine = True
    bench.run(HOUR + SECOND)
    assert [entry[0] for entry in bench.ledger()] == ["expired/constraint_timeout"]
    bench.run(20 * HOUR)
    assert [entry[0] for entry in bench.ledger()] == ["expired/constraint_timeout"] * 2


@pytest.mark.parametrize("action", ["alert", "force"])
def test_given_more_that_have_waited_too_long_than_the_view_holds_then_those_behind_the_first_are_not_read(
    action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read once more: each look read them all, one by one, the last pushed the first out of the view, and the shard stood still."""
    monkeypatch.setattr(read_cache, "ITEMS_MAX", 60)
    bench = ActorHarness(
        shards=1, behaviour=Behaviour(starts_after=10, runs_for=10 * HOUR if action == "force" else SECOND)
    )
    bench.run(SECOND)
    until_opened = {"type": "time_window", "opens": "03:00", "closes": "04:00"}
    waits_for = [until_opened] if action == "alert" else [at_most(1)]
    times_out = {"pending_timeout": "1m", "pending_timeout_action": action, "overlap": "allow"}
    bench.request(an_apply(a_spec(trigger=every("100h"), constraints=waits_for, **times_out)))
    for number in range(100):
        bench.request(a_request("trigger", request_id=f"now-{number}"))
    bench.run(3 * MINUTE)
    assert bench.notices("decision_failed") == []
    bench.asked.clear()
    bench.run(10 * MINUTE)
    jobs_read = [key for read in bench.all_asked(Read) for key in read.keys if key.sk.startswith("J#")]
    assert len(jobs_read) < 100
    bench.run(HOUR)
    assert bench.notices("decision_failed") == []
    assert len(bench.started) == (100 if action == "alert" else 1)
