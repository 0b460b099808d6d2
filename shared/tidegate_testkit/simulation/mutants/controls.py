"""Bugs in wide controls and in what holds messages back."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from tidegate_core.decisions import controls_home
from tidegate_core.decisions.delivery_plane.holding import Holding
from tidegate_core.decisions.run_plane.controls import EndCovered, ShardControls
from tidegate_core.records.controls import Controls
from tidegate_core.store.values import Key
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.transactions.view import View
from tidegate_testkit.simulation.mutants.conditions import without
from tidegate_testkit.simulation.mutants.mutant import Mutant, Patch


def deciding_from_the_first(init: Callable[..., None]) -> Any:
    """An owner goes on deciding from the controls that it began with."""

    def init_with_the_first(unit: UnitOfWork, view: View, shard: int, epoch: int, controls: Controls) -> None:
        first = view.__dict__.setdefault("first_controls", controls)
        init(unit, view, shard, epoch, first)

    return init_with_the_first


def waiting_for_nobody(_: Any) -> Any:
    def nobody(*_: Any) -> Generator[Any, Any, list[int]]:
        yield from ()
        return []

    return nobody


def leaving_it_pending(_: Any) -> Any:
    def nothing(*_: Any) -> list[Key]:
        return []

    return nothing


def not_at_all(_: Any) -> Any:
    return lambda *_: None


CONTROLS = (
    Mutant(
        "controls clause",
        "what was decided from older controls is admitted after the lease has taken the newer ones",
        breaks="I7",
        # Each layer alone covers for the other: the lane knows the newer controls, and the lease demands their version.
        patches=(
            without("holds_lease", clauses="#epoch = :epoch", values=(":epoch",)),
            Patch(UnitOfWork, "__init__", deciding_from_the_first),
        ),
        within=4,
        trap="wide_controls",
    ),
    Mutant(
        "deaf plane",
        "messages of a suspended namespace are sent",
        breaks="I7",
        patches=(Patch(Holding, "covered", lambda _: lambda holding, namespace: False),),
        within=3,
        trap="wide_controls",
    ),
    Mutant(
        "early receipt",
        "a suspend is acknowledged before all shards have stopped",
        breaks="I7",
        patches=(Patch(controls_home, "_behind", waiting_for_nobody),),
        within=2,
        trap="wide_controls",
    ),
    Mutant(
        "left before the gate",
        "a wide suspend leaves what is pending alone, and runs before the gate start",
        breaks="I7",
        patches=(Patch(EndCovered, "_jobs_and_runs", leaving_it_pending),),
        within=75,
        directed=(7,),
        trap="wide_controls",
    ),
    Mutant(
        "span is a miss",
        "occurrences are made of instants at which all was suspended",
        breaks="I7",
        patches=(Patch(Controls, "suspended_until", not_at_all),),
        within=2,
        trap="wide_controls",
    ),
    Mutant(
        "span without end",
        "while a wide suspend goes on cursors pass instants that its resume, of which the shard has not heard, has let go",
        breaks="I1",
        patches=(Patch(Controls, "suspended_since", not_at_all),),
        within=2,
        trap="wide_controls",
    ),
    Mutant(
        "held again",
        "a move that comes again, late, brings back a message that was let go and delivered since",
        breaks="I8",
        patches=(without("moves_seen"),),
        within=20,
        directed=(8,),
        trap="wide_controls",
    ),
    Mutant(
        "half a control",
        "a successor does not go on with what its predecessor had begun",
        breaks="liveness",
        patches=(Patch(ShardControls, "recover", not_at_all),),
        within=4,
        trap="wide_controls",
    ),
)
