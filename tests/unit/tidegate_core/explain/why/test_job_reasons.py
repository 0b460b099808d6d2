"""What a waiting job says where its code alone says too little."""

from __future__ import annotations

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, a_request, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.shard_bench import a_bench
from tests.unit.tidegate_core.admission.test_keys_apart import ONE_OF_A_DAY, a_story, all_wait_behind_a_run
from tests.unit.tidegate_core.explain.why.telling import served, the_jobs, told, why, why_job
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import Commit, Invalid
from tidegate_core.shard.job_order import queue_position


def test_given_a_catch_up_behind_a_run_that_waits_for_its_next_attempt_then_it_says_when_that_begins() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=500, outcome="failed"))
    bench.request(an_apply(a_spec(trigger=every("1h"), overlap="allow", retry={"tries": 1, "backoff": "10m"})))
    bench.away(4 * HOUR)
    bench.run(10 * SECOND)
    first, *_, last = [job.id for job in the_jobs(served(bench))]
    assert told(why_job(bench, last))[-1] == (
        f"catch_up_pacing: what was missed runs one at a time, {first} is open, and its attempt 2 begins at 2025-11-13T06:23:21.510Z"
    )


@pytest.mark.parametrize(("later", "code"), [(10 * SECOND, "running"), (2 * HOUR, "launched")])
def test_given_a_run_that_was_forced_then_it_says_in_spite_of_what(later: int, code: str) -> None:
    """What `pending_timeout_action: force` ignored stood in the ledger's row alone."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=HOUR))
    delay = {"type": "delay", "after": "10m"}
    forced = {"pending_timeout": "5m", "pending_timeout_action": "force"}
    bench.request(an_apply(a_spec(trigger=every("10h"), constraints=[delay], **forced)))
    bench.request(a_request("trigger"))
    bench.run(5 * MINUTE + later)
    explanation = why_job(bench, str(bench.receipts()["trigger-nightly"]["id"]))
    (reason,) = explanation.reasons
    assert (reason.code, reason.values["forced"]) == (code, "delayed")
    assert "; pending_timeout_action: force had it go although " in reason.text
    assert code == "launched" or reason.text in {each.text for each in why(bench).reasons}


def test_given_evidence_that_a_reminder_ends_then_it_says_when() -> None:
    """It said so only while nothing had come, and named no next change once something had."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger={**on_data("raw", 3), "at_least_every": "4h"})))
    bench.event(an_event("x"))
    bench.run(SECOND)
    (line,) = told(why(served(bench)))
    reminder = format_instant(int(str(bench.rows("S#")[0]["next_nominal"])))
    assert line.startswith(f"waiting_for_events [{reminder}]: ")
    assert line.endswith(f"; at_least_every asks for a job at {reminder}")


def test_given_a_drain_while_a_backlog_is_being_ended_then_a_job_that_was_to_go_on_says_what_it_waits_for() -> None:
    """A drained schedule launches what waits: the drain is not what holds it."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=500))
    bench.request(an_apply(a_spec(trigger=every("1h"), overlap="allow")))
    bench.request(a_request("suspend", mode="hold"))
    bench.run(HOUR)
    bench.answer_with(
        lambda each: isinstance(each, Commit) and each.transaction.name == "release", Invalid("too large"), times=100
    )
    bench.request(a_request("resume", backlog="none"))
    bench.request(a_request("trigger"))
    bench.request(a_request("suspend", mode="drain", request_id="again"))
    last = the_jobs(served(bench))[-1].id
    assert {reason.code for reason in why_job(bench, last).reasons} >= {"resuming"}
    assert "suspended" not in {reason.code for reason in why_job(bench, last).reasons}
    assert [reason.code for reason in why(bench).reasons][:2] == ["suspended", "resuming"]


def test_given_more_jobs_before_keys_of_their_own_than_the_owner_tells_of_at_one_look_then_none_is_said_to_be_behind_others() -> (
    None
):
    """Each waits for its own key alone, and goes as soon as that is free."""
    story = a_story(ONE_OF_A_DAY)
    all_wait_behind_a_run(story, 20)
    *_, last = sorted((job for job in the_jobs(served(story)) if job.state == "pending_constraint"), key=queue_position)
    assert [each.code for each in why_job(story, last.id).reasons] == ["concurrency"]
