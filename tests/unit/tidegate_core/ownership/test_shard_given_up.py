"""Runs that are given up: the alert, and the dead letter (SEMANTICS 8)."""

from __future__ import annotations

import pytest

from tests.support import tier
from tests.support.builders import HOUR, MINUTE, RUNS, RUNS_DLQ, SECOND, a_request
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.retry_bench import FAILS, a_schedule, ends, failing
from tests.support.harness.shard_bench import a_bench, a_submit
from tidegate_core.rows.effects import NotSubmitted, Submit
from tidegate_core.runs.retries import TOO_LATE
from tidegate_core.runs.run_lifecycle import SUBMIT_TRIES_MAX


def test_given_an_error_that_is_not_tried_again_then_nothing_is_exhausted() -> None:
    """Review finding: `retries_exhausted` was told of a run of which nothing had been tried."""
    bench = a_bench()
    bench.behaves = failing(1, "config")
    a_schedule(bench, tries=3)
    bench.run(HOUR)
    assert ends(bench) == ["failed"]
    assert bench.notices("retries_exhausted") == []
    assert bench.on(RUNS_DLQ) == []


def test_given_tries_that_are_used_up_then_the_runs_record_is_a_dead_letter_that_says_so() -> None:
    """SEMANTICS 8: exhausted is terminal, with a dead letter and an alert."""
    bench = a_bench()
    bench.behaves = failing(9, "transient")
    run_id = a_schedule(bench, tries=1)
    bench.run(HOUR)
    (letter,) = bench.on(RUNS_DLQ)
    assert letter.key == run_id.encode()
    assert letter.value == bench.on(RUNS)[-1].value
    assert letter.document["state"] == "failed"
    headers = {name: text for name, text in letter.headers.items() if name != "tidegate.error.at"}
    assert headers == {
        "tidegate.error.topic": RUNS,
        "tidegate.error.class": "transient",
        "tidegate.error.message": "tries: 1 are used up",
    }


def test_given_a_program_that_fails_for_the_last_time_while_its_schedule_is_suspended_then_it_has_its_dead_letter() -> (
    None
):
    bench = a_bench()
    bench.behaves = lambda order: Behaviour(starts_after=10, runs_for=10 * SECOND, outcome="failed")
    a_schedule(bench, tries=1)
    bench.run(45 * SECOND)
    bench.request(a_request("suspend"))
    bench.run(HOUR)
    assert len(bench.on(RUNS_DLQ)) == 1


def test_given_an_outage_behind_which_a_try_would_come_too_late_then_the_run_is_given_up() -> None:
    """Found in review: a try that was planned in time began 30 h after the admission."""
    bench = a_bench(FAILS)
    a_schedule(bench, tries=1, retry={"backoff": "12h"})
    bench.run(MINUTE)
    bench.away(30 * HOUR)
    bench.run(MINUTE)
    assert [attempt for attempt, _ in bench.submitted_at if attempt > 1] == []
    letters = [(letter.document["state"], letter.headers["tidegate.error.message"]) for letter in bench.on(RUNS_DLQ)]
    assert letters == [("failed", TOO_LATE)]
    assert ends(bench) == ["failed"]


@pytest.mark.parametrize("passing", ["it dies before the gate", "no launcher takes it"])
def test_given_a_try_that_does_not_begin_before_its_day_is_over_then_the_run_is_given_up(passing: str) -> None:
    """It was planned in time: what is submitted again, or once more, begins within 24 h of the admission as well."""
    bench = a_bench()
    bench.behaves = lambda order: FAILS if order.attempt == 1 else Behaviour(starts_after=None)
    dies = passing == "it dies before the gate"
    if not dies:
        bench.answer_with(
            lambda effect: isinstance(effect, Submit) and effect.order.attempt == 2, NotSubmitted("away"), times=60
        )
    run_id = a_schedule(bench, tries=1, retry={"backoff": "1439m"})
    bench.passes_over_routine = True
    bench.run(24 * HOUR - 55 * SECOND)
    for attempt in range(2, 9):
        if dies and bench.rows("R#") and (run_id, attempt) in {(row["id"], row["attempt"]) for row in bench.rows("R#")}:
            bench.vanish(run_id, attempt)
        bench.run(5 * MINUTE)
    begun_at = [at - bench.submitted_at[0][1] for attempt, at in bench.submitted_at if attempt > 1]
    assert len(begun_at) == (2 if dies else 0)
    assert max(begun_at, default=0) < 24 * HOUR
    (letter,) = bench.on(RUNS_DLQ)
    assert (letter.headers["tidegate.error.message"], letter.document["state"]) == (TOO_LATE, "failed")


def test_given_an_outage_behind_which_there_is_time_for_a_try_then_it_comes() -> None:
    bench = a_bench(FAILS)
    a_schedule(bench, tries=1, retry={"backoff": "12h"})
    bench.run(MINUTE)
    bench.away(20 * HOUR)
    bench.run(MINUTE)
    assert [attempt for attempt, _ in bench.submitted_at if attempt > 1] == [2]


def test_given_a_stop_while_tries_are_left_then_there_is_no_dead_letter() -> None:
    bench = a_bench(FAILS)
    a_schedule(bench, tries=1)
    bench.run(5 * SECOND)
    bench.request(a_request("delete"))
    bench.run(HOUR)
    assert bench.on(RUNS_DLQ) == []


def test_given_errors_that_cost_no_try_for_a_day_then_the_run_is_given_up_for_its_age() -> None:
    bench = a_bench()
    bench.behaves = failing(99, "quota")
    run_id = a_schedule(bench, tries=1, retry={"backoff": "9h", "max_backoff": "9h"})
    bench.passes_over_routine = True
    bench.run(30 * HOUR)
    assert [order.attempt for order in bench.started if order.run_id == run_id] == [1, 2, 3]
    (told, *_) = bench.notices("retries_exhausted")
    assert "24 h" in str(told.fields["why"])
    assert bench.on(RUNS_DLQ)[0].key == run_id.encode()


def test_given_submissions_that_are_used_up_then_the_run_has_its_dead_letter() -> None:
    """SEMANTICS 8, the submit layer."""
    bench = a_bench(Behaviour(starts_after=None))
    run_id = a_schedule(bench, tries=0)
    for attempt in range(1, SUBMIT_TRIES_MAX + 1):
        assert bench.on(RUNS_DLQ) == []
        bench.vanish(run_id, attempt)
        bench.run(5 * MINUTE)
    (told,) = bench.notices("retries_exhausted")
    assert told.fields["why"] == "10 submissions have ended before the start gate"
    assert len(bench.on(RUNS_DLQ)) == 1


def test_given_a_launcher_that_cannot_be_reached_for_an_hour_then_the_run_has_its_dead_letter() -> None:
    bench = a_bench()
    bench.answer_with(a_submit, NotSubmitted("nobody answers"), times=1_000)
    a_schedule(bench, tries=3)
    bench.passes_over_routine = True
    bench.run(2 * HOUR)
    (told,) = bench.notices("retries_exhausted")
    assert told.fields["why"] == "no launcher has taken it within an hour"
    assert len(bench.on(RUNS_DLQ)) == 1


def test_given_a_crash_at_any_effect_then_the_last_failure_has_its_dead_letter() -> None:
    for crash_after in range(1, 40, tier.at_night(1, else_=3)):
        bench = a_bench()
        bench.behaves = failing(9)
        bench.crash_after = bench.effects_outside + crash_after
        a_schedule(bench, tries=1, retry={"backoff": "1s"})
        bench.run(2 * MINUTE)
        assert {each.key for each in bench.on(RUNS_DLQ)} == {str(row["job_id"]).encode() for row in bench.rows("L#")}, (
            crash_after
        )
