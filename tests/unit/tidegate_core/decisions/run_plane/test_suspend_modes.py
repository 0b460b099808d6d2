"""Suspend in its four modes, and what a resume makes of the span (SEMANTICS 10; rows OQ-01, CD-005, CD-170)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidegate_core.effects import Refused, Submit
from tidegate_core.model.instants import format_instant
from tidegate_core.records.codec import from_item
from tidegate_core.records.run_plane import Job
from tidegate_testkit.bench import Behaviour, Bench
from tidegate_testkit.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Doc,
    a_recurring,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
)

CLOSED = {"type": "time_window", "opens": "03:00", "closes": "04:00"}
OPENS_IN = 46 * MINUTE + 40 * SECOND
MODES = ["drop", "drain", "hold", "freeze"]


def a_bench(behaviour: Behaviour | None = None) -> Bench:
    bench = Bench(behaviour=behaviour)
    bench.run(SECOND)
    return bench


def answer(bench: Bench, document: Doc, run: int = 0) -> Doc:
    bench.request(document)
    bench.run(run)
    return bench.receipts()[str(document["id"])]


def suspend(bench: Bench, mode: str, **more: Any) -> Doc:
    return answer(bench, a_request("suspend", mode=mode, **more))


def waiting(bench: Bench) -> list[Job]:
    found = [from_item(Job, row) for row in bench.rows("J#")]
    return sorted((job for job in found if job.state == "pending_constraint"), key=lambda job: job.nominal)


# -- what waits ---------------------------------------------------------------------------------------------------------------


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


# -- runs ---------------------------------------------------------------------------------------------------------------------


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


# -- clocks -------------------------------------------------------------------------------------------------------------------


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


# -- the resume ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backlog", "started", "ended"),
    [
        (None, 8, []),
        ("all", 8, []),
        ("last", 1, ["cancelled/suspended"] * 7),
        ("coalesce", 1, ["coalesced"] * 7),
        ("none", 0, ["cancelled/suspended"] * 8),
    ],
)
def test_given_a_backlog_of_hold_then_the_resume_chooses_what_goes_on(
    backlog: str | None, started: int, ended: list[str]
) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    suspend(bench, "hold")
    bench.run(8 * MINUTE)
    wanted = {} if backlog is None else {"backlog": backlog}
    receipt = answer(bench, a_request("resume", **wanted), run=20 * SECOND)
    assert receipt["backlog"] == started
    assert len(receipt["discarded"]["jobs"]) == len(ended)
    assert len(bench.started) == started
    told = [entry[0].split("/")[0] if entry[0].startswith("coalesced") else entry[0] for entry in bench.ledger()]
    assert sorted(told) == sorted([*ended, *["launched"] * started])
    if backlog == "coalesce":
        interval: Any = bench.started[0].context["interval"]
        assert interval["start"] == "2025-11-13T02:13:00Z"


@pytest.mark.parametrize("effect", range(1, 14))
def test_given_a_crash_at_any_effect_of_a_resume_then_the_backlog_is_cut_once_and_the_answer_complete(
    effect: int,
) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    suspend(bench, "hold")
    bench.run(20 * MINUTE)
    bench.crash_after = bench.effects_outside + effect
    bench.request(a_request("resume", backlog="last"))
    bench.run(30 * SECOND)
    receipt = bench.receipts()["resume-nightly"]
    assert (receipt["backlog"], len(receipt["discarded"]["jobs"])) == (1, 19)
    assert len(bench.started) == 1


@pytest.mark.parametrize("mode", ["drop", "drain", "freeze"])
@pytest.mark.parametrize(
    ("backlog", "count", "started"), [("all", 5, 5), ("last", 1, 1), ("coalesce", 1, 1), ("none", 0, 0), (None, 0, 0)]
)
def test_given_instants_that_made_nothing_then_a_resume_makes_up_for_them_only_when_asked(
    mode: str, backlog: str | None, count: int, started: int
) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    suspend(bench, mode)
    bench.run(5 * MINUTE)
    wanted = {} if backlog is None else {"backlog": backlog}
    receipt = answer(bench, a_request("resume", **wanted), run=20 * SECOND)
    assert receipt["backlog"] == count
    assert len(bench.started) == started
    covered = [row["covered"] for row in bench.rows("L#") if "covered" in row]
    assert covered == ([5] if backlog in {"last", "coalesce"} else [])
    bench.run(MINUTE)
    assert len(bench.started) == started + 1


def test_given_many_missed_instants_then_they_are_made_up_for_across_transactions_and_a_crash() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), overlap="allow", catchup={"max_runs": 100})))
    suspend(bench, "drop")
    bench.run(40 * MINUTE)
    bench.crash_after = bench.effects_outside + 6
    receipt = answer(bench, a_request("resume", backlog="all"), run=MINUTE)
    assert receipt["backlog"] == 40
    assert len([entry for entry in bench.ledger() if entry[0] == "launched"]) == 41


def test_given_more_missed_instants_than_the_schedule_makes_up_for_one_by_one_then_one_job_stands_for_the_rest() -> (
    None
):
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), overlap="allow", catchup={"max_runs": 3})))
    suspend(bench, "drop")
    bench.run(40 * MINUTE)
    receipt = answer(bench, a_request("resume", backlog="all"), run=30 * SECOND)
    assert receipt["backlog"] == 4
    assert [row["covered"] for row in bench.rows("L#") if "covered" in row] == [37]


@pytest.mark.parametrize("mode", ["drop", "drain", "freeze"])
def test_given_a_schedule_that_makes_up_for_pauses_then_a_resume_needs_no_word_of_its_own(mode: str) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), catchup={"after_pause": "coalesce"})))
    suspend(bench, mode)
    bench.run(5 * MINUTE)
    receipt = answer(bench, a_request("resume"), run=20 * SECOND)
    assert receipt["backlog"] == 1
    assert [row["covered"] for row in bench.rows("L#") if "covered" in row] == [5]


@pytest.mark.parametrize(("most", "runs"), [(3, 3), (5, 5)])
def test_given_a_most_number_of_fires_then_a_backlog_does_not_exceed_it(most: int, runs: int) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger={**every("1m"), "max_fires": most}, overlap="allow")))
    bench.run(3 * MINUTE + SECOND)
    assert len(bench.started) == 3
    suspend(bench, "drop")
    bench.run(10 * MINUTE)
    receipt = answer(bench, a_request("resume", backlog="all"), run=MINUTE)
    assert receipt["backlog"] == runs - 3
    bench.run(10 * MINUTE)
    assert len(bench.started) == runs


def test_given_an_event_trigger_then_its_backlog_is_not_merged() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=on_data())))
    suspend(bench, "hold")
    receipt = answer(bench, a_request("resume", backlog="coalesce"))
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("rejected", "backlog")


# -- answers ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_given_a_suspended_schedule_then_the_same_mode_is_unchanged_and_another_a_conflict(mode: str) -> None:
    """Row CD-127: suspending the suspended; who wants other than it is has to resume it first."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    suspend(bench, mode)
    for other in [None, *MODES]:
        wanted = {} if other is None else {"mode": other}
        receipt = answer(bench, a_request("suspend", request_id=f"again-{other}", **wanted))
        assert receipt["status"] == ("unchanged" if other in (None, mode) else "conflict")
    state = bench.state_of()
    assert state is not None
    assert state.mode == mode


def test_given_a_mode_of_the_schedules_own_then_a_suspend_without_one_takes_it() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), suspend_mode="hold")))
    bench.request(a_request("suspend"))
    bench.run(2 * MINUTE)
    assert len(waiting(bench)) == 2


@pytest.mark.parametrize("mode", ["drain", "hold", "freeze"])
def test_given_a_schedule_that_sends_messages_then_it_knows_drop_alone(mode: str) -> None:
    bench = a_bench()
    bench.request(an_apply(a_recurring("nightly")))
    receipt = suspend(bench, mode)
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("rejected", "mode")
    assert suspend(bench, "drop", request_id="drop")["status"] == "accepted"


@pytest.mark.parametrize("mode", MODES)
def test_given_a_repeated_cycle_then_the_schedule_fires_as_before(mode: str) -> None:
    """Row CD-170: suspended, resumed, suspended again: each is accepted."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    for number in range(3):
        assert suspend(bench, mode, request_id=f"s{number}")["status"] == "accepted"
        assert answer(bench, a_request("resume", request_id=f"r{number}"))["status"] == "accepted"
        bench.run(MINUTE)
    assert len(bench.started) == 3


@pytest.mark.parametrize("mode", MODES)
def test_given_an_update_or_a_delete_while_suspended_then_what_is_pending_ends(mode: str) -> None:
    for request_ in (an_apply(a_spec(trigger=every("1m"), args=["new"]), "it"), a_request("delete", request_id="it")):
        bench = a_bench()
        bench.request(an_apply(a_spec(trigger=every("1m"), constraints=[CLOSED])))
        bench.run(3 * MINUTE)
        suspend(bench, mode)
        receipt = answer(bench, request_)
        assert len((receipt["discarded"] or {"jobs": []})["jobs"]) == (0 if mode == "drop" else 3)
        assert waiting(bench) == []


def test_given_a_manual_run_then_it_is_rejected_in_every_mode() -> None:
    """SEMANTICS 4: a manual trigger skips the trigger only; suspend holds for it."""
    for mode in MODES:
        bench = a_bench()
        bench.request(an_apply(a_spec(trigger=every("1h"))))
        suspend(bench, mode)
        assert answer(bench, a_request("trigger"))["status"] == "rejected"


# -- until --------------------------------------------------------------------------------------------------------------------


def test_given_a_suspended_schedule_then_another_end_is_a_conflict_and_the_same_one_changes_nothing() -> None:
    """`unchanged` would let it start by the former end, in the span for which somebody has just suspended it."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    end = bench.now + 5 * MINUTE
    suspend(bench, "drop", until=format_instant(end))
    longer = suspend(bench, "drop", until=format_instant(end + HOUR), request_id="longer")
    assert (longer["status"], longer["errors"][0]["field"]) == ("conflict", "until")
    assert suspend(bench, "drop", until=format_instant(end), request_id="same")["status"] == "unchanged"
    assert suspend(bench, "drop", request_id="without")["status"] == "unchanged"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("away", [False, True])
def test_given_an_end_then_the_schedule_is_resumed_by_itself(mode: str, away: bool) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    suspend(bench, mode, until=format_instant(bench.now + 10 * MINUTE + SECOND))
    bench.run(9 * MINUTE)
    assert bench.started == []
    if away:
        bench.away(2 * MINUTE)
    bench.run(3 * MINUTE)
    state = bench.state_of()
    assert state is not None
    assert (state.status, state.until, state.actor) == ("active", None, "tidegate")
    assert len(bench.started) >= (1 if mode != "hold" else 10)
    assert [row for row in bench.rows("T#") if row["kind"] == "U"] == []


@pytest.mark.parametrize("kind", ["resume", "delete"])
def test_given_somebody_who_is_quicker_then_nothing_is_resumed_at_the_end(kind: str) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("10h"))))
    suspend(bench, "hold", until=format_instant(bench.now + 10 * MINUTE))
    answer(bench, a_request(kind))
    before = bench.state_of()
    bench.run(HOUR)
    assert bench.state_of() == before
    assert [row for row in bench.rows("T#") if row["kind"] == "U"] == []


def test_given_an_end_that_has_passed_then_it_is_refused() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("10h"))))
    receipt = suspend(bench, "hold", until=format_instant(bench.now - 1))
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("rejected", "until")


@pytest.mark.parametrize("effect", range(1, 10))
def test_given_a_crash_at_any_effect_of_the_end_then_the_successor_resumes(effect: int) -> None:
    bench = a_bench()
    pair = all_of(on_data("a"), on_data("b"), timeout="10m", on_timeout="abort")
    bench.request(an_apply(a_spec(trigger=pair)))
    bench.event(an_event("d1", "a"))
    bench.run(SECOND)
    suspend(bench, "freeze", until=format_instant(bench.now + 10 * MINUTE))
    bench.run(9 * MINUTE)
    bench.crash_after = bench.effects_outside + effect
    bench.run(2 * MINUTE)
    bench.event(an_event("d1", "b"))
    bench.run(SECOND)
    assert len(bench.started) == 1


# -- acknowledged -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["drop", "hold", "freeze"])
@pytest.mark.parametrize("effect", range(1, 12))
def test_given_a_crash_at_any_effect_of_a_suspend_then_nothing_starts_after_its_answer(mode: str, effect: int) -> None:
    """I7, with programs that come to the gate at any time around it."""
    bench = a_bench(Behaviour(starts_after=SECOND))
    bench.request(an_apply(a_spec(trigger=every("1s"), overlap="allow")))
    bench.run(3_500)
    bench.crash_after = bench.effects_outside + effect
    bench.request(a_request("suspend", mode=mode))
    while bench.status_of("suspend-nightly") is None:
        bench.run(10)
    started = len(bench.started)
    bench.run(MINUTE)
    assert len(bench.started) == started
    answer(bench, a_request("resume"), run=5 * SECOND)
    assert len(bench.started) > started
    assert bench.notices("decision_failed") == []


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
