"""Bugs in what follows a program that failed (SEMANTICS 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tidegate_core.decisions.run_plane import by_id, retrying, run_ends
from tidegate_testkit.bench import Behaviour
from tidegate_testkit.builders import HOUR, MINUTE, RUNS, RUNS_DLQ, a_spec, an_apply, every
from tidegate_testkit.simulation.mutants.mutant import Mutant, Patch
from tidegate_testkit.simulation.mutants.stage import Stage
from tidegate_testkit.simulation.retrying import FAILURES


def one_try_more(is_used_up: Callable[..., bool]) -> Any:
    return lambda retry, run, error: run.retries > retry.tries


def in_silence(outbox_row: Callable[..., Any]) -> Any:
    return lambda run, given_up=None: outbox_row(run)


def a_run_fails_for_the_last_time() -> Iterator[str]:
    bench = Stage().first
    bench.behaves = lambda _: Behaviour(outcome="failed")
    bench.request(an_apply(a_spec(trigger=every("1h"), retry={"tries": 1})))
    bench.run(HOUR + MINUTE)
    failed = {str(each.document["run_id"]) for each in bench.on(RUNS) if each.document["state"] == "failed"}
    told = {str(each.document["run_id"]) for each in bench.on(RUNS_DLQ)}
    for run_id in sorted(failed - told):
        yield f"dead letters: {run_id} has failed for the last time, and nobody is told"


RETRIES = (
    Mutant(
        "success again",
        "a program that has succeeded is tried again as if it had failed",
        breaks="I2",
        patches=(Patch(retrying, "FAILED", lambda _: frozenset({"failed", "succeeded"})),),
        within=12,
    ),
    Mutant(
        "one try more",
        "one attempt more follows than the schedule wants",
        breaks="I2",
        patches=(Patch(retrying, "_is_used_up", one_try_more),),
        within=47,
        directed=(19,),
    ),
    Mutant(
        "given up in silence",
        "a run whose tries are used up fails, and nobody is told that no further one comes",
        breaks="dead letters",
        patches=(Patch(run_ends, "outbox_row", in_silence),),
        scenario=a_run_fails_for_the_last_time,
    ),
    Mutant(
        "retry after the stop",
        "a program that fails after its schedule was stopped is tried again",
        breaks="I7",
        patches=(Patch(retrying, "_may_launch", lambda _: lambda unit, state, run: True),),
        within=75,
        directed=(9,),
    ),
    Mutant(
        "retry after too late",
        "a cancel answers that the run is over, and leaves it to others to make the next attempt",
        breaks="I7",
        patches=(Patch(by_id, "conclude", lambda _: lambda unit, run, memory, now: None),),
        within=20,
        trap=FAILURES,
        directed=(7,),
    ),
)
