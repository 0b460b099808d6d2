"""One shard's runs from launch to end: what the program is told, what is told of it, and the time that each step has."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    HOUR,
    MINUTE,
    SECOND,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import FOR_EVER, a_bench, a_submit, states, triggered
from tidegate_core.rows.effects import (
    Cancel,
    Commit,
    Effect,
    Invalid,
    NotSubmitted,
    ProgramEnded,
    Read,
    ReadRange,
    SubmitFailed,
)

# -- launching ---------------------------------------------------------------------------------------------------------


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


def test_given_a_submission_that_is_refused_although_its_program_has_begun_then_its_end_is_seen() -> None:
    """Found in review: a submission has no answer, the next one finds no script any more, and the program of the first has passed the gate.
    Nobody watched it, so it was lost for good, with its permit, once it died without a report.
    """
    bench = a_bench(Behaviour(runs_for=MINUTE, reports=False, gone=ProgramEnded(137)))
    bench.lose_answer_of(a_submit, told=NotSubmitted("the launcher gave no answer"))
    bench.answer_with(a_submit, SubmitFailed("config", "no such file"))
    triggered(bench)
    bench.run(5 * MINUTE)
    assert len(bench.started) == 1
    assert [entry[3] for entry in bench.ledger()] == ["failed"]
    assert bench.rows("LIM#")[0].get("holders") is None


def test_given_a_manifest_that_cannot_be_read_then_the_run_fails_at_once_and_says_so() -> None:
    """Found in review: it ended after an hour, with the words that no launcher had taken it."""
    bench = a_bench()
    bench.request(an_apply(a_spec("late", on_data("a"))))
    bench.run(SECOND)
    answer = Invalid("no item can have this key")
    bench.answer_with(
        lambda effect: isinstance(effect, ReadRange) and effect.range.low.startswith("EC#"), answer, times=99
    )
    bench.event(an_event("a1", "a"))
    bench.run(MINUTE)
    assert [entry[3] for entry in bench.ledger()] == ["failed"]
    (ended,) = [row for row in bench.rows("R#") if "ended_at" in row]
    assert ended["error_class"] == "config"
    assert "its manifest cannot be read" in str(ended["reason"])
    assert bench.started == []


def test_given_a_program_that_starts_before_its_submission_is_known_then_it_runs_on() -> None:
    bench = a_bench()
    bench.hold_back(a_submit, answer_only=True)
    triggered(bench)
    bench.run(200)
    bench.release()
    bench.run(5 * SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]
    assert bench.rows("R#")[0]["external_id"] is not None


def _a_mark(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "submitted"


def test_given_a_start_before_the_submission_is_written_down_then_it_is_told_at_once() -> None:
    bench = a_bench(FOR_EVER)
    bench.request(an_apply(a_spec("listens", on_run_of("nightly", "started")), "listens"))
    bench.hold_back(_a_mark)
    triggered(bench)
    bench.run(200)
    bench.release()
    bench.run(SECOND)
    assert [order.file for order in bench.started] == ["/jobs/nightly.py", "/jobs/listens.py"]
    assert states(bench) == ["running", "running"]


def test_given_a_program_that_fails_before_anybody_looks_then_its_start_does_not_wait_for_the_next_attempt() -> None:
    bench = a_bench(Behaviour(starts_after=5, runs_for=10, outcome="failed"))
    bench.request(an_apply(a_spec(trigger=every("100h"), retry={"tries": 1, "backoff": "12h"})))
    bench.request(an_apply(a_spec("listens", on_run_of("nightly", "started")), "listens"))
    bench.store_answers_after = 30
    bench.request(a_request("trigger"))
    bench.run(5 * SECOND)
    assert [order.file for order in bench.started] == ["/jobs/nightly.py", "/jobs/listens.py"]


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


# -- time-outs and ends ------------------------------------------------------------------------------------------------


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
    bench.vanish(run, gone=ProgramEnded(137))
    bench.run(SECOND)
    (ended,) = bench.rows("R#")
    assert (ended["state"], ended["reason"], ended["exit_code"]) == ("failed", "no_report", 137)


# -- time-outs of runs while something was away ------------------------------------------------------------------------


def test_given_a_guard_that_lapses_for_long_then_the_time_to_start_begins_with_the_submission() -> None:
    bench = a_bench(Behaviour(starts_after=20 * SECOND))
    bench.answer_with(a_submit, NotSubmitted("the guard had lapsed"), times=40)
    triggered(bench)
    bench.run(40 * MINUTE)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]


@pytest.mark.parametrize("falls", [False, True])
def test_given_a_guard_that_lapses_for_hours_then_the_program_starts_behind_that(falls: bool) -> None:
    """Brokers that answer too slowly for the guard, and fast enough for the group: each run of that time was given up, for no launcher had
    taken it within an hour, and none had been asked.
    """
    bench = a_bench()
    bench.answer_with(a_submit, NotSubmitted("the guard has lapsed", unasked=True), times=10_000)
    triggered(bench)
    bench.passes_over_routine = True
    bench.run(3 * HOUR)
    assert bench.ledger() == []
    bench.end_scripts()
    if falls:
        bench.answer_with(a_submit, NotSubmitted("the launcher is away"), times=40)
        bench.crash()
        bench.run(25 * MINUTE)
    bench.run(MINUTE)
    assert [entry[3] for entry in bench.ledger()][:1] == ["succeeded"]
    assert [order.attempt for order in bench.started][:1] == [1]


def test_given_a_line_of_programs_that_takes_hours_then_the_last_one_starts_behind_that() -> None:
    """Found in review: ten thousand runs admitted at once, each start some seconds, four at a time. Whoever stood in line behind an hour was
    given up, for no launcher had taken it, with a dead letter; and none had been asked.
    """
    bench = a_bench()
    bench.answer_with(a_submit, NotSubmitted("others are in line before it", unasked=True))
    bench.hold_back(a_submit)
    triggered(bench)
    bench.passes_over_routine = True
    bench.run(3 * HOUR)
    assert bench.ledger() == []
    bench.as_usual()
    bench.run(MINUTE)
    assert [entry[3] for entry in bench.ledger()][:1] == ["succeeded"]
    assert [order.attempt for order in bench.started][:1] == [1]


def test_given_a_line_of_programs_and_a_look_that_stands_in_its_lane_for_hours_then_what_is_known_by_then_decides() -> (
    None
):
    """Seed 35004834: the look was asked for before the run stood in line, a commit of another schedule kept the shard writer for longer than a run
    has to be submitted, and the run was given up, for no launcher had taken it; and none had been asked.
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.answer_with(a_submit, NotSubmitted("the launcher is away"), times=9)
    bench.answer_with(a_submit, NotSubmitted("others are in line before it", unasked=True), times=10_000)
    triggered(bench)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "control")
    bench.append("tidegate.requests", 0, an_apply(a_spec("other", every("24h"))))
    bench.run(2 * HOUR)
    assert bench.holds_something
    bench.as_usual()
    bench.run(2 * MINUTE)
    assert [entry[3] for entry in bench.ledger()][:1] == ["succeeded"]
    assert [order.attempt for order in bench.started][:1] == [1]


def test_given_a_guard_that_lapsed_for_hours_and_a_launcher_that_takes_nothing_then_the_run_ends_within_an_hour_of_that() -> (
    None
):
    bench = a_bench()
    bench.answer_with(a_submit, NotSubmitted("the guard has lapsed", unasked=True), times=10_000)
    triggered(bench)
    bench.passes_over_routine = True
    bench.run(3 * HOUR)
    bench.end_scripts()
    bench.answer_with(a_submit, NotSubmitted("the launcher is away"), times=10_000)
    bench.run(28 * MINUTE)
    assert bench.ledger() == []
    bench.run(HOUR)
    assert [row["detail"] for row in bench.rows("L#")][:1] == ["submit_timeout"]


def test_given_nothing_that_can_be_submitted_for_an_hour_then_the_run_ends_and_says_why() -> None:
    bench = a_bench()
    bench.answer_with(a_submit, NotSubmitted("the launcher is away"), times=10_000)
    triggered(bench)
    bench.run(59 * MINUTE)
    assert bench.ledger() == []
    bench.run(2 * MINUTE)
    (row,) = bench.rows("L#")
    assert (row["state"], row["detail"]) == ("failed", "submit_timeout")


def test_given_a_program_that_never_comes_to_the_gate_then_its_run_ends_says_why_and_leaves_a_dead_letter() -> None:
    """So did a run that no launcher took, and this one did not: nobody was told of a run that had failed for good."""
    bench = a_bench(Behaviour(starts_after=None))
    run = triggered(bench)
    bench.run(14 * MINUTE)
    assert bench.ledger() == []
    bench.run(2 * MINUTE)
    (row,) = bench.rows("L#")
    assert (row["state"], row["detail"]) == ("failed", "start_timeout")
    (letter,) = bench.on("tidegate.runs.dlq")
    assert letter.key == run.encode()


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


def test_given_a_lane_that_stands_for_minutes_then_the_sweeps_of_that_time_are_one_look_at_each_run() -> None:
    """Each sweep added one: behind a slow store the shard writer had ever more to do, and nothing of it was new (seed 20510393)."""
    bench = a_bench(FOR_EVER)
    run_id = triggered(bench)
    bench.run(SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "control")
    bench.request(a_request("suspend", request_id="held"))
    assert bench.holds_something
    bench.run(5 * MINUTE)
    looks = len(looks_at(bench, run_id))
    bench.release()
    bench.run(SECOND)
    assert bench.status_of("held") == "accepted"
    assert len(looks_at(bench, run_id)) - looks <= 2


def looks_at(bench: ActorHarness, run_id: str) -> list[Effect]:
    return [
        each for each in bench.asked if isinstance(each, Read) and any(key.sk == f"R#{run_id}" for key in each.keys)
    ]
