"""An explanation says what is, and how old it is: nothing that a look would make of it."""

from __future__ import annotations

import json

from tests.support.builders import HOUR, MINUTE, SECOND, a_request, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import FOR_EVER, a_bench
from tests.unit.tidegate_core.explain.why.telling import CLUSTER, served, the_jobs, told, why, why_job
from tidegate_api.reads.waiting_reasons import unmet_of
from tidegate_core.language.values.derived_ids import shard_of_run
from tidegate_core.language.values.instants import format_instant
from tidegate_core.shard.job_order import queue_position

ONE_AT_A_TIME = {"type": "concurrency", "max": 1, "scope": "schedule"}


def held_with_waiting_events(bench: ActorHarness, events: int) -> ActorHarness:
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
        f"behind: 1 of the schedule's jobs are before it; the first is {first}, which has no blocker"
    ]
    assert [each.code for each in why_job(bench, third).reasons] == ["suspended", "behind"]


def test_given_a_held_schedule_with_many_jobs_then_those_that_are_only_counted_are_said_to_be_held() -> None:
    """Without a limit nothing else is in their way, and yet none of them is decided on next."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger={**on_data("raw", 1), "take": "exactly_n"}, overlap="allow")))
    bench.request(a_request("suspend", mode="hold"))
    for number in range(10):
        bench.event(an_event(f"day-{number}"))
        bench.run(SECOND)
    lines = told(why(served(bench)))
    assert not any(line.startswith("being_decided") for line in lines), lines
    assert any(line.startswith("suspended: 7 further jobs: ") for line in lines), lines


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


def listed(bench: ActorHarness) -> dict[str, dict[str, object]]:
    """Returns what `job list` says that each waiting job waits for, by id."""
    found = [(shard_of_run(str(row["id"])), row) for row in bench.rows("J#")]
    return {job_id: json.loads(text) for job_id, text in unmet_of(bench.store, CLUSTER, found, bench.now).items()}


def test_given_more_waiting_jobs_than_the_owner_decides_on_at_once_then_the_job_list_has_a_reason_for_each() -> None:
    """One of 250 had a reason: the jobs behind the first are not decided on, and nothing is written of them."""
    bench = a_bench(FOR_EVER)
    bench.request(an_apply(a_spec(trigger={**on_data("raw", 1), "take": "exactly_n"}, constraints=[ONE_AT_A_TIME])))
    for number in range(40):
        bench.event(an_event(f"day-{number}"))
    bench.run(MINUTE)
    waiting = [job for job in the_jobs(served(bench)) if job.state == "pending_constraint"]
    told_of = listed(bench)
    assert len(waiting) == 39
    assert set(told_of) == {job.id for job in waiting}
    assert {each["code"] for each in told_of.values()} == {"concurrency", "behind"}
    assert str(told_of[max(waiting, key=queue_position).id]["reason"]).startswith(
        "38 of the schedule's jobs are before it; the first is "
    )


def test_given_jobs_of_a_low_former_version_then_the_job_list_has_the_urgent_new_one_before_them() -> None:
    bench = a_bench(FOR_EVER)
    trigger = {**on_data("raw", 1), "take": "exactly_n"}
    bench.request(an_apply(a_spec(trigger=trigger, priority="low", constraints=[ONE_AT_A_TIME])))
    for number in range(40):
        bench.event(an_event(f"day-{number}"))
    bench.run(MINUTE)
    urgent = a_spec(trigger=trigger, priority="highest", constraints=[ONE_AT_A_TIME])
    bench.request(an_apply(urgent, request_id="second", on_update="finish_old"))
    bench.event(an_event("urgent"))
    bench.run(MINUTE)
    waiting = [job for job in the_jobs(served(bench)) if job.state == "pending_constraint"]
    (urgent_job,) = (job for job in waiting if job.version == 2)
    last = max((job for job in waiting if job.version == 1), key=queue_position)
    assert str(listed(bench)[last.id]["reason"]).startswith(
        f"39 of the schedule's jobs are before it; the first is {urgent_job.id}, "
    )


def test_given_a_verdict_of_before_a_hold_then_the_job_list_says_the_hold_first_and_when_the_verdict_was_made() -> None:
    """It went on saying that a run was running which had long ended."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=10 * MINUTE))
    bench.request(an_apply(a_spec(trigger=every("12h"), constraints=[ONE_AT_A_TIME])))
    bench.request(a_request("trigger", request_id="t-0"))
    bench.run(SECOND)
    bench.request(a_request("trigger", request_id="t-1"))
    bench.run(SECOND)
    decided = format_instant(json.loads(the_jobs(bench)[-1].unmet or "{}")["at"])
    bench.request(a_request("suspend", mode="hold"))
    bench.run(HOUR)
    assert [row["state"] for row in bench.rows("R#")] == ["succeeded"]
    (reason,) = listed(served(bench)).values()
    assert reason["code"] == "suspended"
    assert f"; when it was decided on last at {decided}: 1 of 1 runs of schedule" in str(reason["reason"])


def test_given_a_load_that_holds_a_job_back_then_why_says_when_its_node_decided_that() -> None:
    bench = a_bench()
    bench.load = 0.9
    bench.request(an_apply(a_spec(trigger=every("12h"), constraints=[{"type": "load"}])))
    bench.request(a_request("trigger"))
    bench.run(HOUR)
    (reason,) = why_job(served(bench)).reasons
    assert reason.code == "load_high"
    at = json.loads(the_jobs(bench)[0].unmet or "{}")["at"]
    assert reason.text.endswith(f"(as its node decided at {format_instant(at)})")
