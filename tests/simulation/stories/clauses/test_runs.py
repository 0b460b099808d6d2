"""Conditions that make one run of one occurrence, within its limits, and none after a stop."""

from __future__ import annotations

import pytest

from tests.simulation.stories.stage import (
    FOR_EVER,
    NEVER_STARTS,
    ONCE,
    Stage,
    a_commit,
    limit_of,
    run_by_hand,
    starts,
    two_under_one_limit,
    writing,
)
from tests.support.builders import SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.rows.effects import Committed


def test_given_a_program_that_starts_while_its_run_is_closed_then_suspend_does_not_report_its_end() -> None:
    """Suspend read the run before the gate. Its transaction arrives after the start."""
    bench = Stage().first
    bench.behaves = lambda order: NEVER_STARTS
    run = run_by_hand(bench)
    bench.hold_back(writing("R#"))
    bench.request(a_request("suspend"))
    started = bench.transact(starts(run, bench.now))
    bench.release()
    bench.run(5 * SECOND)
    listed = (bench.receipts()["suspend-nightly"]["discarded"] or {}).get("jobs", [])
    assert isinstance(started, Committed)
    assert run not in listed, f"I7: run {run} goes on although its end was acknowledged"


def test_given_a_job_that_arrives_again_after_its_run_has_ended_then_it_stays_away() -> None:
    """The first send of what made the job was given up. It arrives when nothing of job and run is left."""
    bench = Stage().first
    bench.delay(a_commit("trigger"))
    run = run_by_hand(bench)
    bench.release()
    bench.crash()
    bench.run(20 * SECOND)
    assert not bench.rows("J#"), f"I2: run {run} has ended, and its job is there again"
    assert len(bench.started) == 1, f"I2: run {run} has ended, and starts again"


@pytest.mark.parametrize(
    "stop",
    [
        pytest.param(a_request("suspend"), id="a suspend"),
        pytest.param(an_apply(a_spec(trigger=every("1h")), "second", on_update="restart"), id="an update"),
    ],
)
def test_given_a_stop_that_was_acknowledged_when_a_frozen_owners_admission_arrives_then_no_run_is_open(
    stop: Doc,
) -> None:
    """The frozen owner's successor has admitted the job too, and closed its run when the stop came."""
    stage = Stage()
    stage.first.request(an_apply(a_spec(trigger=ONCE)))
    stage.first.hold_back(writing("R#"))
    stage.first.run(12 * SECOND)
    second = stage.idle_successor(behaviour=NEVER_STARTS)
    second.run(SECOND)
    second.request(stop)
    second.run(5 * SECOND)
    assert all("ended_at" in row for row in stage.first.rows("R#"))
    stage.first.release()
    still_open = [row["id"] for row in stage.first.rows("R#") if "ended_at" not in row]
    assert still_open == [], f"I7: a run was admitted after {stop['type']} was acknowledged"


def is_counted_correctly(bench: ActorHarness) -> bool:
    limit = limit_of(bench.store)
    return bool(limit["in_use"] == len(limit["holders"]))


def test_given_an_admission_that_arrives_twice_then_the_run_takes_one_permit() -> None:
    bench = Stage(behaviour=FOR_EVER).first
    two_under_one_limit(bench, most=5)
    bench.delay(writing("R#"))
    bench.run(15 * SECOND)
    bench.release()
    assert is_counted_correctly(bench), "I4: more permits are in use than runs hold"


def test_given_an_end_that_arrives_twice_then_the_run_gives_one_permit_back() -> None:
    bench = Stage().first
    two_under_one_limit(bench, most=5)
    bench.delay(writing("Z#"))
    bench.run(30 * SECOND)
    bench.release()
    assert is_counted_correctly(bench), "I4: fewer permits are in use than runs hold"
