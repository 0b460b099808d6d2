"""Suspend in its four modes: what waits, runs before the gate, clocks (SEMANTICS 10; rows OQ-01, CD-005)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
)
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.request_bench import CLOSED, answer
from tests.support.harness.suspend_bench import MODES, a_bench, suspend, waiting
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import Refused, Submit

OPENS_IN = 46 * MINUTE + 40 * SECOND


@pytest.mark.parametrize(("mode", "kept"), [("drop", 0), ("drain", 3), ("hold", 3), ("freeze", 3)])
def test_given_waiting_jobs_then_only_drop_cancels_them(mode: str, kept: int) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), constraints=[CLOSED])))
    bench.run(3 * MINUTE)
    receipt = suspend(bench, mode)
    assert receipt["status"] == "accepted"
    assert len(waiting(bench)) == kept
    assert len((receipt["discarded"] or {"jobs": []})["jobs"]) == 3 - kept


@pytest.mark.parametrize(("mode", "launched"), [("drain", 3), ("hold", 0), ("freeze", 0)])
def test_given_constraints_that_come_to_hold_then_only_drain_launches(mode: str, launched: int) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), constraints=[CLOSED])))
    bench.run(3 * MINUTE)
    suspend(bench, mode)
    bench.run(OPENS_IN + MINUTE)
    assert len(bench.started) == launched


@pytest.mark.parametrize(("mode", "made"), [("drop", 0), ("drain", 0), ("hold", 5), ("freeze", 0)])
def test_given_instants_meanwhile_then_only_hold_makes_jobs_of_them(mode: str, made: int) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    suspend(bench, mode)
    bench.run(5 * MINUTE)
    assert len(waiting(bench)) == made
    assert bench.started == []


@pytest.mark.parametrize(("mode", "fires"), [("drop", False), ("drain", True), ("hold", True), ("freeze", True)])
def test_given_half_filled_evidence_then_it_is_kept_but_by_drop(mode: str, fires: bool) -> None:
    """Row OQ-01: what was counted before goes on counting after the resume."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=on_data(count=2))))
    bench.event(an_event("a"))
    bench.run(SECOND)
    suspend(bench, mode)
    assert answer(bench, a_request("resume"), run=SECOND)["status"] == "accepted"
    bench.event(an_event("b"))
    bench.run(SECOND)
    assert len(bench.started) == int(fires)


@pytest.mark.parametrize(("mode", "counted"), [("drop", 0), ("drain", 0), ("hold", 1), ("freeze", 0)])
def test_given_events_meanwhile_then_only_hold_counts_them(mode: str, counted: int) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=on_data(count=2))))
    suspend(bench, mode)
    for day in ("a", "b"):
        bench.event(an_event(day))
    bench.run(SECOND)
    assert len(waiting(bench)) == counted
    assert bench.started == []
    assert answer(bench, a_request("resume"), run=SECOND)["backlog"] == counted
    assert len(bench.started) == counted


@pytest.mark.parametrize("mode", ["hold", "freeze"])
@pytest.mark.parametrize("limits", [[at_most(3)], [at_most(3, "program")]])
def test_given_runs_before_the_gate_then_they_are_parked_and_start_after_the_resume(
    mode: str, limits: list[Doc]
) -> None:
    """Their attempt is refused at the gate from then on; the next one has its own number, and the permits are free."""
    bench = a_bench(Behaviour(starts_after=5 * SECOND))
    three = every("1s", end=format_instant(bench.now + 2_500))
    bench.request(an_apply(a_spec(trigger=three, constraints=limits, overlap="allow")))
    bench.run(2_800)
    assert len(bench.rows("R#")) == 3
    receipt = suspend(bench, mode)
    assert receipt["running"] == []
    assert [row for row in bench.rows("R#") if "ended_at" not in row] == []
    assert [job.attempt for job in waiting(bench)] == [2, 2, 2]
    assert all(row.get("in_use", 0) == 0 for row in bench.rows("LIMIT"))
    bench.run(MINUTE)
    assert bench.started == []
    assert answer(bench, a_request("resume"), run=MINUTE)["backlog"] == 3
    assert [order.attempt for order in bench.started] == [2, 2, 2]
    assert len({order.run_id for order in bench.started}) == 3
    assert [entry[0] for entry in bench.ledger()] == ["launched"] * 3


def test_given_a_run_that_passed_the_gate_then_every_mode_lists_it_and_lets_it_go_on() -> None:
    for mode in MODES:
        bench = a_bench(Behaviour(runs_for=MINUTE))
        bench.request(an_apply(a_spec(trigger=every("1h"))))
        run = answer(bench, a_request("trigger"), run=SECOND)["id"]
        assert suspend(bench, mode)["running"] == [run]
        bench.run(2 * MINUTE)
        assert [entry[0] for entry in bench.ledger()] == ["launched"]


def test_given_drain_then_a_run_before_the_gate_goes_on() -> None:
    bench = a_bench(Behaviour(starts_after=5 * SECOND))
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    suspend(bench, "drain")
    bench.run(MINUTE)
    assert [order.attempt for order in bench.started] == [1]


@pytest.mark.parametrize("times", [1, 4])
def test_given_an_attempt_that_was_parked_often_then_it_cost_no_try(times: int) -> None:
    bench = a_bench(Behaviour(starts_after=None))
    bench.request(an_apply(a_spec(trigger=every("10h"))))
    run = answer(bench, a_request("trigger"), run=SECOND)["id"]
    for number in range(times):
        answer(bench, a_request("suspend", mode="freeze", request_id=f"s{number}"), run=SECOND)
        answer(bench, a_request("resume", request_id=f"r{number}"), run=SECOND)
    bench.behaves = lambda order: Behaviour()
    bench.vanish(run, times + 1)
    bench.run(MINUTE)
    assert [order.attempt for order in bench.started] == [times + 2]


def test_given_a_job_in_the_queue_of_a_shared_limit_then_it_stands_in_nobodys_way_while_held() -> None:
    bench = a_bench(Behaviour(runs_for=MINUTE))
    for name in ("first", "second", "third"):
        spec = a_spec(name, every("10h"), file="/jobs/same.py", constraints=[at_most(1, "program")])
        bench.request(an_apply(spec))
        bench.request(a_request("trigger", name))
        bench.run(SECOND)
    assert len(bench.started) == 1
    answer(bench, a_request("suspend", "second", mode="hold"))
    bench.run(70 * SECOND)
    assert [order.context["schedule"]["name"] for order in bench.started] == ["first", "third"]  # type: ignore[index,call-overload]
    answer(bench, a_request("resume", "second"), run=2 * MINUTE)
    assert len(bench.started) == 3


@pytest.mark.parametrize(("mode", "expires"), [("drain", True), ("hold", False), ("freeze", False)])
def test_given_a_long_suspension_then_the_pending_time_out_runs_in_drain_alone(mode: str, expires: bool) -> None:
    bench = a_bench()
    spec = a_spec(trigger=every("10h"), constraints=[CLOSED], pending_timeout="10m")
    bench.request(an_apply(spec))
    bench.request(a_request("trigger"))
    bench.run(4 * MINUTE)
    suspend(bench, mode)
    bench.run(20 * MINUTE)
    answer(bench, a_request("resume"), run=5 * MINUTE)
    assert [entry[0] for entry in bench.ledger()] == (["expired/constraint_timeout"] if expires else [])
    bench.run(2 * MINUTE)
    assert [entry[0] for entry in bench.ledger()] == ["expired/constraint_timeout"]


@pytest.mark.parametrize("mode", ["hold", "freeze"])
@pytest.mark.parametrize("crash", [False, True])
def test_given_a_long_suspension_then_the_time_out_of_evidence_stands_still(mode: str, crash: bool) -> None:
    bench = a_bench()
    pair = all_of(on_data("a"), on_data("b"), correlate="data_partition", timeout="10m", on_timeout="abort")
    bench.request(an_apply(a_spec(trigger=pair)))
    bench.event(an_event("d1", "a"))
    bench.event(an_event("d2", "a"))
    bench.run(4 * MINUTE)
    suspend(bench, mode)
    bench.run(HOUR)
    if crash:
        bench.crash()
    answer(bench, a_request("resume"), run=5 * MINUTE)
    assert bench.ledger() == []
    bench.event(an_event("d1", "b"))
    bench.run(2 * MINUTE)
    assert [entry[0] for entry in bench.ledger()] == ["expired/trigger_timeout", "launched"]


def test_given_a_write_about_a_parked_attempt_that_comes_late_then_the_next_attempt_is_not_touched() -> None:
    """I2: an item is made anew under the run's key, and the former one's revision must not be found again."""
    bench = a_bench(Behaviour(starts_after=None))
    bench.request(an_apply(a_spec(trigger=every("10h"))))
    bench.run(SECOND)
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    (submitted,) = bench.commits("submitted")
    suspend(bench, "freeze")
    bench.hold_back(lambda effect: isinstance(effect, Submit))
    answer(bench, a_request("resume"), run=SECOND)
    before = [row for row in bench.rows("R#") if "ended_at" not in row]
    assert [row["attempt"] for row in before] == [2]
    late = replace(submitted, token="late")
    assert isinstance(bench.transact(late), Refused)
    assert [row for row in bench.rows("R#") if "ended_at" not in row] == before
