"""Bugs in what a suspend, its resume, and an update make of what is pending (SEMANTICS 10, 12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidegate_core.decisions.run_plane import admit, by_id, control, count, parking
from tidegate_core.decisions.run_plane.answers import Outcome
from tidegate_core.model.receipts import Receipt
from tidegate_core.records.run_plane import ScheduleState
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_testkit.simulation.mutants.mutant import Mutant, Patch

Restarted = Callable[..., ScheduleState]


def keeping_the_old(restarted: Restarted) -> Restarted:
    return lambda *arguments: replace(restarted(*arguments), kept_from=0)


def admitting_what_is_held(admits: Callable[[ScheduleState], bool]) -> Callable[[ScheduleState], bool]:
    return lambda state: admits(state) or (state.status == "suspended" and state.mode == "hold")


def hearing_while_frozen(fires: Callable[[ScheduleState], bool]) -> Callable[[ScheduleState], bool]:
    return lambda state: fires(state) and state.mode != "hold"


def saying_no_more(answer: Callable[..., None]) -> Callable[..., None]:
    def said(unit: UnitOfWork, outcome: Outcome, receipt: Receipt, now: int) -> None:
        answer(unit, outcome, receipt.model_copy(update={"errors": ()}), now)

    return said


SUSPENDS = (
    Mutant(
        "no reasons",
        "a manual run is refused, while its schedule is suspended or has a full queue, and nobody says why",
        breaks="answers",
        patches=(Patch(by_id, "answer", saying_no_more),),
        within=3,
    ),
    Mutant(
        "left unparked",
        "hold and freeze leave runs before the gate alone",
        breaks="I7",
        patches=(Patch(parking, "stands_still", lambda _: lambda state: False),),
        within=40,
        directed=(14,),
    ),
    Mutant(
        "held jobs",
        "what is parked is admitted when its constraints hold",
        breaks="I7",
        patches=(Patch(admit, "admits", admitting_what_is_held),),
        within=15,
        directed=(6,),
    ),
    Mutant(
        "old kept",
        "an update that restarts leaves jobs of older versions to be launched",
        breaks="I7",
        patches=(Patch(control, "_restarted", keeping_the_old),),
        within=18,
    ),
    Mutant(
        "deaf hold",
        "events are not counted while a schedule is held, nor after that",
        breaks="I3",
        patches=(Patch(count, "fires", hearing_while_frozen),),
        within=25,
    ),
)
