"""Jobs that wait for a load: asked for only while somebody waits for nothing else, once for all who wait."""

from __future__ import annotations

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import CLOSED, OPENS, a_bench
from tidegate_core.rows.effects import SampleLoad, Submit

SHORT = Behaviour(starts_after=10, runs_for=500)
BUSY: Doc = {"type": "load", "below": 0.85, "resume": 0.75}


def waiting(load: float | None, *constraints: Doc, schedules: int = 1) -> ActorHarness:
    """One job of each schedule has just been asked for."""
    bench = a_bench(SHORT)
    bench.load = load
    for number in range(schedules):
        name = f"s{number}"
        bench.request(an_apply(a_spec(name, trigger=every("12h"), constraints=list(constraints) or [BUSY])))
        bench.request(a_request("trigger", name))
    bench.run(SECOND)
    return bench


def counts(bench: ActorHarness) -> tuple[int, int]:
    """Returns how many runs were started, and how often a load was asked for."""
    return len(bench.all_asked(Submit)), len(bench.all_asked(SampleLoad))


def test_given_a_low_load_then_the_job_goes_after_one_sample() -> None:
    assert counts(waiting(0.2)) == (1, 1)


def test_given_a_high_load_then_the_job_goes_once_it_has_fallen_far_enough() -> None:
    bench = waiting(0.9)
    bench.run(MINUTE)
    assert counts(bench)[0] == 0
    bench.load = 0.8
    bench.run(MINUTE)
    assert counts(bench)[0] == 0
    bench.load = 0.7
    bench.run(15 * SECOND)
    assert counts(bench)[0] == 1


def test_given_a_job_that_waits_then_the_load_is_asked_for_every_fifteen_seconds_and_nothing_is_written() -> None:
    bench = waiting(0.9)
    asked, commits = counts(bench)[1], len(bench.commits("admit"))
    bench.run(10 * MINUTE)
    assert counts(bench)[1] - asked <= 41
    assert len(bench.commits("admit")) == commits


def test_given_many_schedules_that_wait_then_one_sample_serves_those_of_a_shard() -> None:
    bench = waiting(0.9, schedules=20)
    asked = counts(bench)[1]
    bench.run(10 * MINUTE)
    assert counts(bench)[1] - asked <= 41 * 4, "the bench has four shards"
    bench.load = 0.1
    bench.run(15 * SECOND)
    assert counts(bench)[0] == 20


def test_given_another_constraint_that_is_unmet_then_nobody_asks_for_the_load_before_it_holds() -> None:
    bench = waiting(0.2, CLOSED, BUSY)
    bench.run(OPENS - bench.now - 1)
    assert counts(bench) == (0, 0)
    bench.run(SECOND)
    assert counts(bench) == (1, 1)


def test_given_no_answer_then_it_is_told_and_the_job_goes_after_five_minutes() -> None:
    bench = waiting(None)
    bench.run(5 * MINUTE - 5 * SECOND)
    assert counts(bench)[0] == 0
    bench.run(25 * SECOND)
    assert counts(bench)[0] == 1
    told = [each.fields for each in bench.notices("load_unknown")]
    assert [(each["source"], each["resource"], each["problem"]) for each in told] == [
        ("local", "cpu", "nobody answers")
    ]


def test_given_a_strict_constraint_and_no_answer_then_the_job_waits_for_one() -> None:
    bench = waiting(None, {**BUSY, "strict": True})
    bench.run(HOUR)
    assert counts(bench)[0] == 0
    bench.load = 0.1
    bench.run(15 * SECOND)
    assert counts(bench)[0] == 1


def test_given_a_constraint_that_aborts_then_the_job_is_dropped_by_what_is_known_and_not_by_what_is_not() -> None:
    abort = {**BUSY, "on_unmet": "abort"}
    assert [entry[0] for entry in waiting(0.9, abort).ledger()] == ["skipped/load_high"]
    assert waiting(None, abort).ledger() == []


def test_given_a_successor_then_it_asks_anew() -> None:
    bench = waiting(0.9)
    bench.crash()
    bench.run(20 * SECOND)
    assert counts(bench)[0] == 0
    bench.load = 0.1
    bench.run(30 * SECOND)
    assert counts(bench)[0] == 1


def test_given_a_load_beside_a_shared_limit_that_is_full_then_the_job_goes_when_both_let_it() -> None:
    """It was in no queue because of the load, and nobody asked for the load because of the limit: it waited for ever."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=5 * MINUTE))
    bench.load = 0.2
    shared = {"file": "/jobs/shared.py"}
    bench.request(an_apply(a_spec("first", trigger=every("12h"), constraints=[at_most(1, "program")], **shared)))
    bench.request(a_request("trigger", "first"))
    bench.run(10 * SECOND)
    bench.request(an_apply(a_spec("second", trigger=every("12h"), constraints=[BUSY, at_most(1, "program")], **shared)))
    bench.request(a_request("trigger", "second"))
    bench.run(MINUTE)
    assert counts(bench)[0] == 1
    bench.run(6 * MINUTE)
    assert counts(bench)[0] == 2
