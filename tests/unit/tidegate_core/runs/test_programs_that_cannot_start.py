"""A program that can never start: its run says why, gives up after two equal deaths, and holds its permits no longer."""

from __future__ import annotations

import json

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import a_bench, a_submit
from tests.unit.tidegate_core.explain.why.telling import served, told, why, why_job
from tidegate_api.reads.view_builders import run_view
from tidegate_core.rows.effects import NotSubmitted, ProgramEnded
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.run import Run

NO_HEAP = ProgramEnded(
    1,
    "unknown",
    "exit code 1: Error: Could not create the Java Virtual Machine.",
    "Invalid maximum heap size: -Xmx4 gigs\nError: Could not create the Java Virtual Machine.",
)


def never_starts() -> ActorHarness:
    """A schedule that was triggered, and whose program does not come to the gate."""
    bench = a_bench(Behaviour(starts_after=None))
    bench.request(an_apply(a_spec(trigger=every("12h"))))
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    return bench


def dies(bench: ActorHarness, gone: ProgramEnded, attempt: int) -> None:
    """The attempt ends before the gate, and the next one is submitted where there is one."""
    bench.vanish(str(bench.receipts()["trigger-nightly"]["id"]), attempt, gone=gone)
    bench.run(6 * MINUTE)


def the_run(bench: ActorHarness) -> Run:
    found = {str(row["sk"]): from_item(Run, row) for row in bench.rows("R#")}
    return next(iter(found.values()))


def test_given_a_program_that_dies_twice_alike_before_the_gate_then_its_run_fails_as_config_and_says_why() -> None:
    """It was tried ten times in 25 minutes."""
    bench = never_starts()
    dies(bench, NO_HEAP, 1)
    assert the_run(bench).state == "submitted"
    dies(bench, NO_HEAP, 2)
    run = the_run(bench)
    assert (run.state, run.error_class, run.exit_code, run.attempt) == ("failed", "config", 1, 2)
    assert run.reason == f"two attempts ended alike before the start gate: {NO_HEAP.message}"
    assert run.last_lines == NO_HEAP.last_lines
    assert all(not row.get("holders") for row in bench.rows("LIM#"))


def test_given_deaths_that_differ_only_in_what_varies_then_they_are_alike() -> None:
    bench = never_starts()
    dies(bench, ProgramEnded(1, "unknown", "26/11/20 10:00:01 ERROR pid 4711: no module named flights"), 1)
    dies(bench, ProgramEnded(1, "unknown", "26/11/20 10:00:07 ERROR pid 4801: no module named flights"), 2)
    assert the_run(bench).error_class == "config"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            ProgramEnded(137, "transient", "ended by signal 9"),
            ProgramEnded(137, "transient", "ended by signal 9"),
            id="signal",
        ),
        pytest.param(
            ProgramEnded(75, "transient", "no word from the gate"),
            ProgramEnded(75, "transient", "no word from the gate"),
            id="75",
        ),
        pytest.param(
            ProgramEnded(1, "unknown", "disk full"), ProgramEnded(1, "unknown", "no such package"), id="other words"
        ),
        pytest.param(
            ProgramEnded(1, "unknown", "disk full"), ProgramEnded(2, "unknown", "disk full"), id="other codes"
        ),
        pytest.param(
            ProgramEnded(None, "transient", "its end was not seen"),
            ProgramEnded(None, "transient", "its end was not seen"),
            id="unseen",
        ),
    ],
)
def test_given_deaths_that_may_pass_or_differ_then_the_program_is_submitted_again(
    first: ProgramEnded, second: ProgramEnded
) -> None:
    bench = never_starts()
    dies(bench, first, 1)
    dies(bench, second, 2)
    run = the_run(bench)
    assert (run.state, run.attempt) == ("submitted", 3)


def test_given_a_program_that_ends_well_without_having_passed_the_gate_then_two_such_ends_are_enough() -> None:
    bench = never_starts()
    dies(bench, ProgramEnded(0), 1)
    dies(bench, ProgramEnded(0), 2)
    assert (the_run(bench).state, the_run(bench).error_class) == ("failed", "config")


def test_given_a_program_that_died_before_the_gate_then_why_and_the_run_show_exit_code_and_last_lines() -> None:
    bench = never_starts()
    dies(bench, NO_HEAP, 1)
    (line, *_) = told(why(served(bench)))
    assert line.startswith("before_gate")
    assert "; attempt 1 ended at " in line
    assert line.endswith(
        "exit code 1: Error: Could not create the Java Virtual Machine.; last lines: Invalid maximum heap size: -Xmx4 gigs | "
        "Error: Could not create the Java Virtual Machine."
    )
    setback = run_view(the_run(bench)).last_setback
    assert setback is not None
    assert (setback["attempt"], setback["exit_code"], setback["last_lines"]) == (1, 1, NO_HEAP.last_lines)
    dies(bench, NO_HEAP, 2)
    (reason,) = why_job(bench, the_run(bench).id).reasons
    assert (reason.code, reason.values["exit_code"], reason.values["last_lines"]) == ("launched", 1, NO_HEAP.last_lines)
    view = run_view(the_run(bench))
    assert (view.exit_code, view.last_lines, view.last_setback) == (1, NO_HEAP.last_lines, None)
    assert [each.code for each in why(bench).reasons][-1] == "launched"


def test_given_a_launcher_that_takes_nothing_then_why_says_what_it_said() -> None:
    bench = a_bench()
    bench.answer_with(a_submit, NotSubmitted("its supervisor did not start"), times=1_000)
    bench.request(an_apply(a_spec(trigger=every("12h"))))
    bench.request(a_request("trigger"))
    bench.run(10 * MINUTE)
    (line, *_) = told(why(served(bench)))
    assert line.startswith("launching")
    assert line.endswith("none took it: its supervisor did not start")
    assert json.loads(the_run(bench).setback or "{}")["at"] < bench.now - 9 * MINUTE


def test_given_a_program_that_was_killed_and_reported_nothing_then_its_run_has_its_last_lines() -> None:
    bench = a_bench(
        Behaviour(runs_for=MINUTE, reports=False, gone=ProgramEnded(137, "transient", "", "Killed by the kernel"))
    )
    bench.request(an_apply(a_spec(trigger=every("12h"))))
    bench.request(a_request("trigger"))
    bench.run(HOUR)
    run = the_run(bench)
    assert (run.reason, run.exit_code, run.last_lines) == ("no_report", 137, "Killed by the kernel")


def test_given_a_deploy_mode_that_the_launcher_would_refuse_then_the_apply_is_rejected() -> None:
    """It was accepted, and each run failed."""
    bench = a_bench()
    program = {"type": "pyspark", "file": "/jobs/join.py", "conf": {"spark.submit.deployMode": "cluster"}}
    bench.request(an_apply(a_spec(target={"type": "program", "program": program})))
    receipt = bench.receipts()["apply-nightly"]
    assert receipt["status"] == "rejected"
    (error,) = receipt["errors"]
    assert error["field"] == "target.program"
    assert "client mode only" in error["problem"]
