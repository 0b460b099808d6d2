"""An explanation says what is, and how old it is: nothing that a look would make of it."""

from __future__ import annotations

from tests.support.builders import HOUR, MINUTE, SECOND, a_request, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import Behaviour, Bench
from tests.unit.tidegate_core.decisions.shard_bench import FOR_EVER, a_bench
from tests.unit.tidegate_core.why.telling import served, the_jobs, told, why, why_job

ONE_AT_A_TIME = {"type": "concurrency", "max": 1, "scope": "schedule"}


def held_with_waiting_events(bench: Bench, events: int) -> Bench:
    """A schedule that was held, and whose trigger has been satisfied since so many times."""
    bench.request(
        an_apply(
            a_spec(
                trigger={**on_data("raw", 1), "take": "exactly_n"},
                constraints=[ONE_AT_A_TIME],
            )
        )
    )
    bench.request(a_request("suspend", mode="hold"))
    for number in range(events):
        bench.event(an_event(f"day-{number}"))
        bench.run(SECOND)
    return served(bench)


def test_given_a_held_schedule_with_three_waiting_jobs_and_no_open_run_then_no_job_says_that_a_run_is_open() -> None:
    bench = held_with_waiting_events(a_bench(), 3)
    assert bench.rows("R#") == []
    jobs = the_jobs(bench)
    assert len(jobs) == 3
    for job in jobs:
        assert "concurrency" not in {each.code for each in why_job(bench, job.id).reasons}
    assert "concurrency" not in {each.code for each in why(bench).reasons}


def test_given_a_held_schedule_then_the_jobs_behind_the_first_say_which_job_goes_before_them() -> None:
    bench = held_with_waiting_events(a_bench(), 3)
    first, second, third = (job.id for job in the_jobs(bench))
    assert [each.code for each in why_job(bench, first).reasons] == ["suspended"]
    assert told(why_job(bench, second))[1:] == [
        f"behind: 1 of the schedule's jobs are before it; the first is {first}, which nothing of its own holds back"
    ]
    assert [each.code for each in why_job(bench, third).reasons] == ["suspended", "behind"]


def test_given_a_held_schedule_whose_run_still_runs_then_the_jobs_say_that_it_does() -> None:
    bench = a_bench(FOR_EVER)
    bench.request(an_apply(a_spec(trigger=every("12h"), constraints=[ONE_AT_A_TIME])))
    bench.request(a_request("trigger", request_id="t-0"))
    bench.run(SECOND)
    bench.request(a_request("trigger", request_id="t-1"))
    bench.request(a_request("suspend", mode="hold"))
    bench.run(SECOND)
    last = the_jobs(served(bench))[-1].id
    assert [each.code for each in why_job(bench, last).reasons] == ["suspended", "concurrency"]
