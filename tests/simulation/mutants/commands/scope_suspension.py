"""Bugs in wide controls and in what holds messages back."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from tests.simulation.mutants.clauses.weakened_conditions import without
from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, returning
from tidegate_core.commands.roll_out import RollOut
from tidegate_core.commands.shard_suspension import EndSuspendedWork, ShardSuspension
from tidegate_core.commands.upstream_deleted import RemoveUpstream
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.messages.one_shot.held_messages import HeldMessages
from tidegate_core.rows.scope_suspension import ScopeSuspensions
from tidegate_core.shard.events.deferred_inbox import DeferredRows
from tidegate_core.writes.read_cache import View
from tidegate_core.writes.unit_of_work import UnitOfWork

EVENTS_HEARD_LATE_TESTS = "unit/tidegate_core/evidence/test_events_heard_late.py"


def deciding_from_the_first(
    init: Callable[..., None],
    unit: UnitOfWork,
    view: View,
    shard: int,
    epoch: int,
    controls: ScopeSuspensions,
    *others: Any,
) -> None:
    """An owner goes on deciding from the controls that it began with."""
    first = view.__dict__.setdefault("first_controls", controls)
    init(unit, view, shard, epoch, first, *others)


def waiting_for_nobody(_: RollOut, wanted: int) -> Generator[Any, Any, int]:
    yield from ()
    return wanted


def by_age_alone(may_count: Callable[[DeferredRows, int, int], bool]) -> Any:
    """What is known and not carried yet says nothing."""
    return lambda rows, carried, appended: may_count(rows, rows._version, appended)


def behind_all_that_waits(writer: ShardWriter, *works: Any) -> None:
    for work in works:
        writer.add(work)


def at_once(gone: RemoveUpstream, writer: ShardWriter) -> Operation[None]:
    yield from gone._receipt_once_told(writer)
    gone.done()


CONTROLS = (
    Mutant(
        "controls clause",
        "what was decided from older controls is admitted after the lease has taken the newer ones",
        breaks="I7",
        # Each layer alone covers for the other: the shard writer knows the newer controls, and the lease demands their version.
        patches=(
            without("holds_lease", clauses="#epoch = :epoch", values=(":epoch",)),
            Patch(UnitOfWork, "__init__", around(deciding_from_the_first)),
        ),
        killed_by=Seeds(within=4, directed=(3,), trap="wide_controls"),
    ),
    Mutant(
        "deaf plane",
        "messages of a suspended namespace are sent",
        breaks="I7",
        patches=(Patch(HeldMessages, "covered", returning(False)),),
        killed_by=Seeds(within=3, trap="wide_controls"),
    ),
    Mutant(
        "early receipt",
        "a suspend is acknowledged before all shards have stopped",
        breaks="I7",
        patches=(Patch(RollOut, "_done_by_all", instead(waiting_for_nobody)),),
        killed_by=Seeds(within=2, trap="wide_controls"),
    ),
    Mutant(
        "left before the gate",
        "a wide suspend leaves what is pending alone, and runs before the gate start",
        breaks="I7",
        patches=(Patch(EndSuspendedWork, "_jobs_and_runs", returning([])),),
        killed_by=Seeds(within=75, directed=(8,), trap="wide_controls"),
    ),
    Mutant(
        "span is a miss",
        "occurrences are made of instants at which all was suspended",
        breaks="I7",
        patches=(Patch(ScopeSuspensions, "suspended_until", returning(None)),),
        killed_by=Seeds(within=2, trap="wide_controls"),
    ),
    Mutant(
        "span without end",
        "while a wide suspend goes on cursors pass instants that its resume, of which the shard has not heard, has let go",
        breaks="I1",
        patches=(Patch(ScopeSuspensions, "suspended_since", returning(None)),),
        killed_by=Seeds(within=2, trap="wide_controls"),
    ),
    Mutant(
        "held again",
        "a move that comes again, late, brings back a message that was let go and delivered since",
        breaks="I8",
        patches=(without("moves_seen"),),
        killed_by="simulation/stories/clauses/test_scope_suspension.py::test_given_a_message_that_was_let_go_when_its_hold_arrives_again_then_it_is_not_held_back[a later hold]",
    ),
    Mutant(
        "half a control",
        "a successor does not go on with what its predecessor had begun",
        breaks="liveness",
        patches=(Patch(ShardSuspension, "recover", returning(None)),),
        killed_by=Seeds(within=4, directed=(1,), trap="wide_controls"),
    ),
    Mutant(
        "row of the span",
        "while a wide suspend goes on events are dropped that its resume, of which the shard has not heard, lets count",
        breaks="I3",
        patches=(Patch(DeferredRows, "may_count", returning(False)),),
        killed_by=f"{EVENTS_HEARD_LATE_TESTS}::test_given_an_event_between_a_resume_and_its_arrival_then_it_counts",
    ),
    Mutant(
        "age of a row",
        "a resume that is known, and that the lease does not carry for minutes, finds the events gone that it lets count",
        breaks="I3",
        patches=(Patch(DeferredRows, "may_count", by_age_alone),),
        killed_by=f"{EVENTS_HEARD_LATE_TESTS}::test_given_a_shard_that_is_not_done_with_the_suspend_for_minutes_then_what_came_behind_the_resume_counts",
    ),
    Mutant(
        "rows of the span first",
        "what was left in a wide suspend is counted behind what came later",
        breaks="order",
        patches=(Patch(ShardWriter, "add_first", instead(behind_all_that_waits)),),
        killed_by=f"{EVENTS_HEARD_LATE_TESTS}::test_given_rows_that_were_left_then_they_come_before_what_comes_behind_the_resume",
    ),
    Mutant(
        "upstream gone in a span",
        "a schedule that is gone is told of before ends of its runs that wait for the end of a wide suspend",
        breaks="I3",
        patches=(Patch(RemoveUpstream, "run", instead(at_once)),),
        killed_by=f"{EVENTS_HEARD_LATE_TESTS}::test_given_an_upstream_that_is_deleted_meanwhile_then_its_end_of_before_counts_first",
    ),
)
