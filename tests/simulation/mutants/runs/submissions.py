"""Bugs in what follows a launcher's answer, and a program that does not end as asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead
from tests.simulation.users.misbehaving_programs import TRAP
from tidegate_core.runs import retries
from tidegate_core.runs.run_completion import end_before_gate
from tidegate_core.runs.run_lifecycle import BEFORE_GATE, CheckRun, RejectRun, submit_again
from tidegate_core.writes.unit_of_work import UnitOfWork


def trying_what_passes(rejection: RejectRun, unit: UnitOfWork, now: int) -> None:
    run = rejection.read(unit)
    if run is not None and run.attempt == rejection.attempt and run.state in BEFORE_GATE:
        submit_again(unit, run, rejection.message, rejection.error_class, now)


def believing_the_last_word(rejection: RejectRun, unit: UnitOfWork, now: int) -> None:
    run = rejection.read(unit)
    if run is not None and run.attempt == rejection.attempt and run.ended_at is None:
        end_before_gate(unit, run, "failed", rejection.message, rejection.error_class, now)


def as_if_it_had_been_asked(decide: Callable[..., None]) -> Callable[..., None]:
    return lambda look, unit, now: decide(replace(look, is_unasked=lambda run: False), unit, now)


def asking_once(decide: Callable[..., None], look: CheckRun, unit: UnitOfWork, now: int) -> None:
    run = look.read(unit)
    if run is None or run.ended_at is not None or run.state in BEFORE_GATE or not run.cancel_requested:
        decide(look, unit, now)


SUBMISSIONS = (
    Mutant(
        "rejected for now",
        "a submission that the launcher will never take is sent again, because elsewhere that error passes",
        breaks="I1",
        patches=(Patch(RejectRun, "decide", instead(trying_what_passes)),),
        killed_by=Seeds(within=12, trap=TRAP),
    ),
    Mutant(
        "rejected while it runs",
        "a run whose unanswered submission started a program fails and returns its permits, because the next submission was refused",
        breaks="I4",
        patches=(Patch(RejectRun, "decide", instead(believing_the_last_word)),),
        killed_by=Seeds(within=12, directed=(3,), trap=TRAP),
    ),
    Mutant(
        "out of line",
        "a run that waits in the queue of its node is given up, although no launcher was asked",
        breaks="I1",
        patches=(Patch(CheckRun, "decide", as_if_it_had_been_asked),),
        killed_by=Seeds(within=12, directed=(2,), trap=TRAP),
    ),
    Mutant(
        "asked to end once",
        "a program that goes on when asked to end is never asked again, and runs for ever",
        breaks="liveness",
        patches=(Patch(CheckRun, "decide", around(asking_once)),),
        killed_by=Seeds(within=20, directed=(7,), trap=TRAP),
    ),
    Mutant(
        "user code again",
        "a program that reported an error that it would repeat is tried again",
        breaks="I2",
        patches=(Patch(retries, "error_of", instead(lambda run: "unknown")),),
        killed_by=Seeds(within=12, directed=(2,), trap=TRAP),
    ),
)
