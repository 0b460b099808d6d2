"""Bugs in the rates that schedules share: what an admission demands, how long it counts, and what is taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from tidegate_core.constraints.spans import Span
from tidegate_core.decisions.run_plane import parking, rates, runs
from tidegate_core.store.values import Update
from tidegate_testkit.simulation.mutants.mutant import Mutant, Patch
from tidegate_testkit.simulation.pacing import RATES


def demanding_nothing(count: Callable[..., Update]) -> Any:
    return lambda *arguments, **named: replace(count(*arguments, **named), condition=None)


def counting_half_the_span(_: Any) -> Any:
    return lambda span, now, known: now + span.per // 2


def not_counting_what_is_forced(count: Callable[..., str]) -> Any:
    def counted(unit: Any, limit: Any, key: Any, job: Any, now: int) -> str:
        if job.forced is None:
            return count(unit, limit, key, job, now)
        return f"{key.pk}|RATE#{now:013d}"

    return counted


def keeping_what_came_to_nothing(give_back: Callable[..., None]) -> Any:
    def given(unit: Any, limit: str, run: Any, now: int) -> None:
        if "|RATE#" not in limit:
            give_back(unit, limit, run, now)

    return given


RATE_BUGS: Final = (
    Mutant(
        "rate bound",
        "two shards admit at the same moment what a rate has one place for",
        breaks="I4",
        patches=(Patch(rates, "count_admission", demanding_nothing),),
        within=3,
        trap=RATES,
    ),
    Mutant(
        "rate span",
        "an admission counts for half of its span",
        breaks="I4",
        patches=(Patch(Span, "counts_until", counting_half_the_span),),
        within=3,
        trap=RATES,
    ),
    Mutant(
        "rate forced",
        "what a pending time-out forces counts for nobody",
        breaks="I4",
        patches=(Patch(rates, "count", not_counting_what_is_forced),),
        within=3,
        trap=RATES,
    ),
    Mutant(
        "rate back after all",
        "a run that has started is taken out of its rate when it ends",
        breaks="I4",
        patches=(Patch(runs, "came_to_nothing", lambda _: lambda run: True),),
        within=3,
        trap=RATES,
    ),
    Mutant(
        "rate leak",
        "a run that is made a job again counts on, and once more when it is admitted again",
        breaks="I4",
        patches=(Patch(parking, "give_permit_back", keeping_what_came_to_nothing),),
        within=18,
        trap=RATES,
        directed=(7,),
    ),
)
