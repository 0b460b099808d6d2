"""One shard's run plane as a whole: launching, adopting, watching, holding, sweeping (DESIGN 4, 6)."""

from __future__ import annotations

import pytest

from tidegate_core.decisions.run_plane.attempts import PROBE_GAP_MS
from tidegate_core.decisions.shard_actor import SWEEP_MS
from tidegate_core.effects import (
    Cancel,
    Commit,
    Effect,
    Gone,
    LookedUp,
    Lookup,
    NotProduced,
    NotSubmitted,
    Poke,
    Produce,
    Read,
    ReadRange,
    Submit,
    SubmitFailed,
    Write,
)
from tidegate_core.records.codec import from_item
from tidegate_core.records.run_plane import Run
from tidegate_testkit.bench import Behaviour, Bench
from tidegate_testkit.builders import (
    HOUR,
    MINUTE,
    NOW,
    RUNS,
    SECOND,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
    on_run_of,
)

CLOSED = {"type": "time_window", "opens": "03:00", "closes": "04:00"}
OPENS = NOW + 46 * MINUTE + 40 * SECOND
FOR_EVER = Behaviour(runs_for=None)


def a_bench(behaviour: Behaviour | None = None) -> Bench:
    bench = Bench(behaviour=behaviour)
    bench.run(SECOND)
    return bench


def triggered(bench: Bench) -> str:
    """A schedule that is run by hand; returns the run's id."""
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    return str(bench.receipts()["trigger-nightly"]["id"])


def the_run(bench: Bench) -> Run | None:
    found = [from_item(Run, row) for row in bench.rows("R#") if "ended_at" not in row]
    return found[0] if found else None


def a_submit(effect: Effect) -> bool:
    return isinstance(effect, Submit)


def a_lookup(effect: Effect) -> bool:
    return isinstance(effect, Lookup)


def states(bench: Bench) -> list[str]:
    return [str(each.document["state"]) for each in bench.on(RUNS)]


# -- launching ----------------------------------------------------------------------------------------------------------------


def test_given_a_run_then_its_states_are_told_in_order() -> None:
    bench = a_bench()
    triggered(bench)
    bench.run(5 * SECOND)
    assert states(bench) == ["running", "succeeded"]
    assert bench.rows("Z#") == []
    assert bench.rows("R#") == [row for row in bench.rows("R#") if "ended_at" in row]


def test_given_a_launcher_that_cannot_be_reached_then_it_is_asked_again_and_the_program_runs_once() -> None:
    bench = a_bench()
    bench.answer_with(a_submit, NotSubmitted("the guard had lapsed"), times=4)
    triggered(bench)
    bench.run(MINUTE)
    assert len(bench.started) == 1
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]


def test_given_a_submission_that_will_never_work_then_the_run_fails_with_its_class() -> None:
    bench = a_bench()
    bench.answer_with(a_submit, SubmitFailed("config", "no such file"))
    triggered(bench)
    bench.run(SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["failed"]
    (ended,) = bench.rows("R#")
    assert (ended["error_class"], ended["reason"]) == ("config", "no such file")
    assert bench.rows("LIM#")[0].get("holders") is None


def test_given_a_program_that_starts_before_its_submission_is_known_then_it_runs_on() -> None:
    bench = a_bench()
    bench.hold_back(a_submit, answer_only=True)
    triggered(bench)
    bench.run(200)
    bench.release()
    bench.run(5 * SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]
    assert bench.rows("R#")[0]["external_id"] is not None


def test_given_a_manifest_then_the_program_is_told_what_was_counted_and_nothing_later() -> None:
    bench = a_bench(FOR_EVER)
    bench.request(an_apply(a_spec(trigger=on_data(count=2), overlap="allow")))
    bench.run(SECOND)
    for day in ("d1", "d2", "d3"):
        bench.event(an_event(day, rows=7))
    bench.run(SECOND)
    manifest = bench.started[0].context["manifest"]
    assert isinstance(manifest, list)
    assert [(row["partition"], row["rows"]) for row in manifest if isinstance(row, dict)] == [("d1", 7), ("d2", 7)]


def test_given_a_run_that_is_fired_by_another_then_it_is_told_about_it() -> None:
    bench = a_bench(Behaviour(outputs={"rows": 3}))
    bench.request(an_apply(a_spec("down", on_run_of("nightly"), ["${upstream.run_id}", "${upstream.outputs.rows}"])))
    up = triggered(bench)
    bench.run(5 * SECOND)
    assert bench.started[-1].args == (up, "3")
    upstream = bench.started[-1].context["upstream"]
    assert isinstance(upstream, dict)
    assert upstream["state"] == "succeeded"


@pytest.mark.parametrize(("outcome", "fires"), [("succeeded", False), ("failed", True)])
def test_given_states_that_a_schedule_waits_for_then_only_those_fire_it(outcome: str, fires: bool) -> None:
    bench = a_bench(Behaviour(outcome=outcome))
    bench.request(an_apply(a_spec("down", on_run_of("nightly", "failed", "killed"))))
    triggered(bench)
    bench.run(5 * SECOND)
    assert ("down" in {entry[1] for entry in bench.ledger()}) == fires


def test_given_a_run_closed_before_the_gate_then_it_is_nobodys_upstream() -> None:
    bench = a_bench(Behaviour(starts_after=None))
    states_ = ["succeeded", "failed", "killed"]
    bench.request(an_apply(a_spec("down", on_run_of("nightly", *states_))))
    triggered(bench)
    bench.request(a_request("suspend"))
    bench.run(MINUTE)
    assert [entry[1] for entry in bench.ledger()] == ["nightly"]


def test_given_a_chain_by_correlation_then_each_key_goes_its_own_way() -> None:
    bench = a_bench()
    trigger = all_of(on_data("a"), on_data("b"), correlate="data_partition")
    bench.request(an_apply(a_spec("join", trigger, ["${correlation}"], overlap="allow")))
    bench.request(an_apply(a_spec("after", on_run_of("join"), ["${correlation}"], overlap="allow")))
    bench.run(SECOND)
    for dataset in "ab":
        for day in ("d1", "d2"):
            bench.event(an_event(day, dataset))
    bench.run(10 * SECOND)
    told = sorted((order.context["schedule"]["name"], order.args) for order in bench.started)  # type: ignore[call-overload,index]  # a JSON document
    assert told == [("after", ("d1",)), ("after", ("d2",)), ("join", ("d1",)), ("join", ("d2",))]


# -- time-outs and ends -----------------------------------------------------------------------------------------------------------


def test_given_a_program_that_never_comes_to_the_gate_then_the_run_ends_after_its_time() -> None:
    bench = a_bench(Behaviour(starts_after=None))
    run = triggered(bench)
    bench.run(14 * MINUTE)
    assert bench.ledger() == []
    bench.run(2 * MINUTE)
    assert [entry[3] for entry in bench.ledger()] == ["failed"]
    assert Cancel(run, 1) in bench.all_asked(Cancel)


def test_given_a_program_that_vanishes_without_a_report_then_the_run_failed() -> None:
    bench = a_bench(FOR_EVER)
    run = triggered(bench)
    bench.run(SECOND)
    bench.vanish(run, gone=Gone(137))
    bench.run(SECOND)
    (ended,) = bench.rows("R#")
    assert (ended["state"], ended["reason"], ended["exit_code"]) == ("failed", "no_report", 137)


def test_given_a_lost_poke_then_the_sweep_finds_the_end() -> None:
    bench = a_bench(Behaviour(runs_for=100))
    bench._poke = lambda order: None  # type: ignore[method-assign]
    bench.hold_back(lambda effect: type(effect).__name__ == "Watch")
    triggered(bench)
    bench.run(SWEEP_MS + SWEEP_MS // 5 + SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]


def test_given_a_lost_poke_about_the_inbox_then_the_sweep_finds_the_request() -> None:
    bench = a_bench()
    bench.answer_with(lambda effect: isinstance(effect, Poke), NotSubmitted("lost"), times=1)
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    assert bench.receipts() == {}
    bench.run(SWEEP_MS + SWEEP_MS // 5 + SECOND)
    assert bench.status_of("apply-nightly") == "accepted"


# -- adoption ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["submitting", "submitted", "running"])
def test_given_a_predecessors_run_that_is_found_then_it_is_adopted_and_ends_as_it_would_have(moment: str) -> None:
    bench = a_bench(Behaviour(starts_after=500))
    if moment == "submitting":
        bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "submitted")
    triggered(bench)
    bench.run(600 if moment == "running" else 100)
    run = the_run(bench)
    assert run is not None
    assert run.state == moment
    bench.crash()
    bench.run(5 * SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]
    assert len(bench.started) == 1
    assert len(bench.all_asked(Submit)) == 1


def test_given_an_adopted_run_then_its_host_is_known() -> None:
    """Else the next successor, on another host, would take what it cannot see for absent."""
    bench = a_bench(FOR_EVER)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "submitted")
    triggered(bench)
    bench.crash()
    bench.run(SECOND)
    run = the_run(bench)
    assert run is not None
    assert (run.host, run.boot_id) == ("host-1", "boot-1")


def test_given_a_run_that_was_never_submitted_then_the_successor_submits_it() -> None:
    bench = a_bench()
    bench.hold_back(a_submit)
    triggered(bench)
    bench.crash()
    bench.run(5 * SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]
    assert len(bench.started) == 1


def test_given_a_submitted_run_of_which_nothing_is_left_then_it_is_tried_again_or_failed() -> None:
    bench = a_bench(Behaviour(starts_after=None))
    triggered(bench)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("absent"))
    bench.run(SECOND)
    run = the_run(bench)
    assert run is not None
    assert run.attempt == 2


@pytest.mark.parametrize("where", ["elsewhere", "unknown"])
def test_given_a_started_run_that_nobody_can_ask_then_it_is_lost_after_the_gap_and_keeps_its_permit(where: str) -> None:
    bench = a_bench(FOR_EVER)
    run = triggered(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp(where), times=1_000)
    bench.run(PROBE_GAP_MS - MINUTE)
    found = the_run(bench)
    assert found is not None
    assert found.state == "running"
    bench.run(2 * MINUTE)
    found = the_run(bench)
    assert found is not None
    assert found.state == "lost"
    assert bench.rows("LIM#")[0]["holders"] == [run]


def test_given_a_lost_run_that_reports_after_all_then_its_end_counts() -> None:
    bench = a_bench(Behaviour(runs_for=30 * MINUTE))
    triggered(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=1_000)
    bench.run(35 * MINUTE)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]
    assert bench.rows("LIM#")[0].get("holders") is None


def test_given_a_cancel_that_was_asked_before_a_crash_then_the_successor_ends_the_program() -> None:
    bench = a_bench(FOR_EVER)
    run = triggered(bench)
    bench.run(SECOND)
    bench.answer_with(lambda effect: isinstance(effect, Cancel), NotSubmitted("crashed before it was carried out"))
    bench.request({"id": "c", "type": "run.cancel", "run_id": run})
    bench.crash()
    bench.run(5 * SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["killed"]


# -- waiting ----------------------------------------------------------------------------------------------------------------------


def test_given_a_closed_window_then_the_job_is_launched_when_it_opens() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1h"), constraints=[CLOSED])))
    bench.request(a_request("trigger"))
    bench.run(OPENS - bench.now - 1)
    assert bench.all_asked(Submit) == []
    bench.run(1)
    assert len(bench.all_asked(Submit)) == 1


def test_given_a_permit_that_another_shard_returned_then_the_waiting_job_follows_within_its_retry() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=3 * SECOND))
    limits = [at_most(1, "program")]
    for name in ("one", "two", "three"):
        bench.request(an_apply(a_spec(name, every("1h"), file="/jobs/same.py", constraints=limits)))
        bench.request(a_request("trigger", name))
    bench.run(15 * SECOND)
    assert [entry[0] for entry in bench.ledger()] == ["launched"] * 3


def test_given_a_shared_limit_then_its_programs_never_overlap() -> None:
    """I4."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=2 * SECOND))
    limits = [at_most(2, "program")]
    for name in ("one", "two", "three", "four"):
        spec = a_spec(name, every("5s"), file="/jobs/same.py", constraints=limits, overlap="allow")
        bench.request(an_apply(spec))
    most = 0
    for _ in range(300):
        bench.run(100)
        most = max(most, len([row for row in bench.rows("R#") if row["state"] == "running" and "ended_at" not in row]))
    assert most == 2


def test_given_many_jobs_that_expire_together_then_all_of_them_do() -> None:
    bench = a_bench()
    window = {"type": "time_window", "opens": "12:00", "closes": "13:00"}
    spec = a_spec(trigger=every("1s", end="2025-11-13T02:14:10Z"), constraints=[window], pending_timeout="2m")
    bench.request(an_apply(spec))
    bench.now += MINUTE  # Away: all instants are made at once, with one deadline.
    bench.run(5 * MINUTE)
    assert {entry[0] for entry in bench.ledger()} == {"expired/constraint_timeout"}
    assert len(bench.ledger()) == 49
    assert bench.rows("J#") == []


def test_given_many_jobs_that_wait_for_a_window_then_all_of_them_run_one_after_another() -> None:
    bench = a_bench(Behaviour(starts_after=1, runs_for=5))
    bench.request(an_apply(a_spec(trigger=every("1m", end="2025-11-13T02:45:00Z"), constraints=[CLOSED])))
    bench.run(HOUR)
    assert [entry[0] for entry in bench.ledger()] == ["launched"] * 31


# -- outbox -----------------------------------------------------------------------------------------------------------------------


def test_given_a_broker_that_is_away_then_neither_finishing_nor_matching_waits_for_it() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec("down", on_run_of("nightly"))))
    bench.answer_with(
        lambda effect: isinstance(effect, Produce) and effect.topic == RUNS,
        NotProduced("unavailable", "away"),
        times=20,
    )
    triggered(bench)
    bench.run(2 * SECOND)
    assert sorted(entry[1] for entry in bench.ledger()) == ["down", "nightly"]
    assert bench.rows("Z#") != []
    bench.run(MINUTE)
    assert bench.rows("Z#") == []
    assert "succeeded" in states(bench)


def test_given_an_older_page_of_the_inbox_then_nothing_in_it_is_done_twice() -> None:
    """The page was read before a row's removal and answered after it."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.hold_back(lambda effect: getattr(getattr(effect, "batch", None), "name", "") == "inbox_done")
    bench.request(a_request("trigger"))
    bench.hold_back(lambda effect: isinstance(effect, ReadRange) and effect.range.low == "I#", answer_only=True)
    shard = int(str(bench.rows("S#")[0]["pk"])[3:])
    from tidegate_core.decisions.inputs import Poked

    bench.give(Poked(shard))
    held = bench._held.pop()
    bench.release()
    bench._held.append(held)
    bench.release()
    bench.run(5 * SECOND)
    assert len(bench.started) == 1
    assert bench.rows("I#") == []


# -- years of it ------------------------------------------------------------------------------------------------------------------


def manifest(bench: Bench) -> list[str]:
    rows = bench.started[-1].context["manifest"]
    assert isinstance(rows, list)
    return [str(row["partition"]) for row in rows if isinstance(row, dict)]


def test_given_evidence_that_is_open_for_years_then_nothing_of_it_is_lost() -> None:
    """A lone leaf has no time-out, so that rare feeds add up: its entries must outlive any TTL."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=on_data(count=3))))
    for day in ("p1", "p2", "p1"):
        bench.event(an_event(day, event_id=f"{day} {bench.now}"))
        bench.run(SECOND)
        bench.months(13)
    assert [row["counts"] for row in bench.rows("E#")] == [[2]]
    bench.event(an_event("p3"))
    bench.run(5 * SECOND)
    assert manifest(bench) == ["p1", "p2", "p3"]


@pytest.mark.parametrize("ends", ["run", "time-out", "suspend", "no template"])
def test_given_evidence_that_ended_then_its_chunks_go_a_month_later_whoever_is_here_then(ends: str) -> None:
    bench = a_bench()
    trigger = all_of(on_data("a"), on_data("b"), timeout="1h") if ends == "time-out" else on_data("a", 2)
    bench.request(an_apply(a_spec(trigger=trigger)))
    bench.event(an_event("d1", "a"))
    bench.event(an_event("d2", "a" if ends in {"run", "no template"} else "c"))
    if ends == "suspend":
        bench.request(a_request("suspend"))
    bench.run(2 * HOUR)
    assert bench.rows("EC#") != []
    bench.months(1)
    bench.run(MINUTE)
    bench.months(1)
    bench.run(MINUTE)
    assert bench.rows("EC#") == []
    assert [row for row in bench.rows("T#") if row["kind"] == "C"] == []


def test_given_a_crash_in_the_middle_of_a_clean_up_then_the_successor_does_the_rest() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=on_data("a"))))
    bench.event(an_event("d1", "a"))
    bench.run(5 * SECOND)
    bench.months(2)
    bench.lose(lambda effect: isinstance(effect, Write) and effect.batch.name == "clean_up", times=3)
    bench.crash()
    bench.run(MINUTE)
    assert bench.rows("EC#") == []
    assert bench.rows("T#") == []


# -- time-outs of runs while something was away -------------------------------------------------------------------------------------


def test_given_a_guard_that_lapses_for_long_then_the_time_to_start_begins_with_the_submission() -> None:
    bench = a_bench(Behaviour(starts_after=20 * SECOND))
    bench.answer_with(a_submit, NotSubmitted("the guard had lapsed"), times=40)
    triggered(bench)
    bench.run(40 * MINUTE)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]


def test_given_nothing_that_can_be_submitted_for_an_hour_then_the_run_ends_and_says_why() -> None:
    bench = a_bench()
    bench.answer_with(a_submit, NotSubmitted("the launcher is away"), times=10_000)
    triggered(bench)
    bench.run(59 * MINUTE)
    assert bench.ledger() == []
    bench.run(2 * MINUTE)
    (row,) = bench.rows("L#")
    assert (row["state"], row["detail"]) == ("failed", "submit_timeout")


@pytest.mark.parametrize("submitted", [False, True])
def test_given_a_node_that_was_away_then_a_run_before_the_gate_still_has_its_time(submitted: bool) -> None:
    slow = Behaviour(starts_after=None if submitted else 20 * SECOND)
    bench = a_bench(slow)
    if not submitted:
        bench.hold_back(a_submit)
    run = triggered(bench)

    def end() -> list[object]:
        return [row["state"] for row in bench.rows("L#") if row["job_id"] == run]

    bench.away(2 * HOUR)
    bench.run(14 * MINUTE)
    assert end() == ([] if submitted else ["succeeded"])
    bench.run(2 * MINUTE)
    assert end() == ["failed" if submitted else "succeeded"]


# -- lost -------------------------------------------------------------------------------------------------------------------------


def test_given_a_run_that_is_lost_and_reports_then_both_are_told_and_the_loss_is_no_reason_any_more() -> None:
    bench = a_bench(Behaviour(runs_for=30 * MINUTE))
    triggered(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=1_000)
    bench.run(35 * MINUTE)
    assert states(bench) == ["running", "lost", "succeeded"]
    assert bench.on(RUNS)[-1].document["reason"] is None
    (row,) = bench.rows("L#")
    assert "detail" not in row


# -- what it costs to wait ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["program", "schedule"])
def test_given_schedules_that_wait_for_a_limit_then_it_costs_a_look_a_second_however_many_wait(scope: str) -> None:
    bench = a_bench(FOR_EVER)
    bench.store_answers_after = 4
    limits = [at_most(1, scope)]
    bench.request(an_apply(a_spec("holder", every("10h"), file="/jobs/same.py", constraints=limits)))
    bench.run(SECOND)
    bench.request(a_request("trigger", "holder"))
    bench.request(an_apply(a_spec("waits", every("10s"), file="/jobs/same.py", constraints=limits)))
    bench.run(10 * MINUTE)
    assert len(bench.rows("J#")) >= 58
    bench.asked.clear()
    bench.run(MINUTE)
    reads = [each for each in bench.all_asked(Read) if any(key.pk.startswith("LIMIT") for key in each.keys)]
    assert len(reads) <= (70 if scope == "program" else 0)
    assert len(bench.all_asked(Commit)) <= 60
    memory = [shard.memory for shard in bench.actor.shards.values()]
    assert sum(len(each._hold_order) for each in memory) <= 4


def test_given_a_backlog_that_may_run_at_once_then_few_decisions_admit_all_of_it() -> None:
    bench = a_bench(FOR_EVER)
    trigger = every("1s", end="2025-11-13T02:20:00Z")
    bench.request(an_apply(a_spec(trigger=trigger, overlap="allow", constraints=[CLOSED])))
    bench.run(OPENS - bench.now - 1)
    waiting = len(bench.rows("J#"))
    assert waiting >= 390
    bench.asked.clear()
    bench.run(SECOND)
    assert len(bench.all_asked(Submit)) == waiting
    admitting = [
        each
        for each in bench.all_asked(Commit)
        if any(getattr(action, "item", {}).get("state") == "pending_launch" for action in each.transaction.actions)
    ]
    assert len(admitting) <= waiting // 8 + 2


def test_given_runs_that_ended_then_nothing_of_them_is_remembered() -> None:
    bench = a_bench(Behaviour(starts_after=1, runs_for=5))
    bench.request(an_apply(a_spec(trigger=every("1s"))))
    bench.run(2 * MINUTE)
    assert len(bench.started) > 100
    assert sum(len(shard._attempts._launching) for shard in bench.actor.shards.values()) <= 1
    assert len(bench.actor._host.operations._live) < 60
