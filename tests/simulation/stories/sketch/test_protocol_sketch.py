"""Crashes, lost answers and second owners at the places where the protocol's first sketch went wrong."""

from __future__ import annotations

from tests.simulation.stories.stage import FOR_EVER, ONCE, Stage, a_commit, two_under_one_limit, writing
from tests.support.builders import SECOND, a_spec, an_apply, an_event, every, on_data
from tidegate_core.rows.effects import Submit


def test_given_an_owner_that_crashes_during_a_fire_then_the_program_runs() -> None:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=ONCE)))
    bench.crash_at(lambda effect: a_commit("fire")(effect) and writing("S#")(effect))
    bench.run(20 * SECOND)
    assert bench.started, "I1: the program did not run"


def test_given_an_owner_that_crashes_while_it_reads_an_event_then_the_event_counts() -> None:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(3 * SECOND)
    bench.crash_at(a_commit("cursor"))
    bench.event(an_event("d1"))
    bench.run(20 * SECOND)
    assert bench.started, "I3: the event does not count"


def test_given_an_owner_that_crashes_after_its_admission_then_the_program_runs() -> None:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=ONCE)))
    bench.crash_at(writing("R#"))
    bench.run(60 * SECOND)
    assert bench.started, "I1: the program did not run"


def test_given_an_owner_that_crashes_after_its_submission_then_each_attempt_runs_once() -> None:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=ONCE)))
    bench.crash_at(lambda effect: isinstance(effect, Submit))
    bench.run(20 * SECOND)
    attempts = [(order.run_id, order.attempt) for order in bench.started]
    assert len(set(attempts)) == len(attempts), "I2: two artefacts of one attempt ran"


def test_given_nobody_for_a_while_then_each_instant_of_that_time_has_its_run() -> None:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    bench.run(SECOND)
    bench.away(95 * SECOND)
    bench.run(5 * SECOND)
    assert len(bench.started) >= 9, "I1: instants of the time without an owner have no run"


def test_given_two_owners_that_fire_one_instant_then_there_is_one_job() -> None:
    stage = Stage()
    stage.first.request(an_apply(a_spec(trigger=ONCE)))
    stage.first.hold_back(a_commit("fire"))
    stage.first.run(12 * SECOND)
    stage.successor()
    stage.first.release()
    made = {str(row["id"]) for prefix in ("J#", "R#") for row in stage.first.rows(prefix)}
    assert len(made) <= 1, "I2: one instant made two jobs"


def test_given_two_shards_that_launch_at_once_then_the_limit_holds() -> None:
    bench = Stage(behaviour=FOR_EVER).first
    two_under_one_limit(bench)
    bench.hold_back(writing("R#"))
    bench.run(12 * SECOND)
    bench.release()
    assert len(bench.started) <= 1, "I4: two programs run under a limit of 1"


def test_given_a_fire_whose_answer_is_lost_then_the_program_runs() -> None:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=ONCE)))
    bench.lose_answer_of(a_commit("fire"))
    bench.run(60 * SECOND)
    assert bench.started, "I1: the program did not run"


def test_given_an_owner_that_a_late_acquire_has_fenced_then_it_serves_on() -> None:
    """The late acquire is that of a former holder, which does nothing else."""
    stage = Stage()
    stage.first.request(an_apply(a_spec(trigger=every("10s"))))
    stage.idle_successor().run(0)
    stage.first.run(35 * SECOND)
    assert len(stage.first.started) >= 3, "I1: nobody serves the shard"
