"""Bugs in what follows a program that failed (SEMANTICS 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidegate_core.decisions.run_plane import retrying
from tidegate_testkit.simulation.mutants.mutant import Mutant, Patch


def one_try_more(is_left: Callable[..., bool]) -> Any:
    return lambda retry, run, error, at: retry.follows(error) and run.retries <= retry.tries


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
        patches=(Patch(retrying, "_is_left", one_try_more),),
        within=80,
        directed=(27,),
    ),
    Mutant(
        "retry after the stop",
        "a program that fails after its schedule was stopped is tried again",
        breaks="I7",
        patches=(Patch(retrying, "_may_launch", lambda _: lambda unit, state, run: True),),
        within=60,
    ),
)
