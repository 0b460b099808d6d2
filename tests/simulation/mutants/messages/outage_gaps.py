"""Planted bugs in the one delivery that stands for all instants of an outage (docs/internals/protocol.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from tests.simulation.mutants.mutant import Mutant, Patch, around, returning
from tidegate_core.engine.operations import Operation
from tidegate_core.messages.recurring.message_template import Templates
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.messages.wire.due_queue import QueuedMessage, Stage
from tidegate_core.rows.outage import Outage

TESTS = "unit/tidegate_core/messages/recurring/test_recurring_silence.py"


def giving_way_as_it_is_read_ahead(
    load: Callable[[Templates, Sequence[QueuedMessage]], Operation[None]],
    templates: Templates,
    rows: Sequence[QueuedMessage],
) -> Operation[None]:
    """The next fire of a schedule takes the place of a refused fire as soon as that is read ahead."""
    yield from load(templates, rows)
    source = cast(RecurringQueue, templates._messages.recurring)
    for row in rows:
        if row.stage is Stage.READY and row.message is None and row.occurrence is not None:
            templates._messages.close(row, Stage.GONE)
            source._await_next(source._near[row.occurrence.ref], row.place)


def making_anew_all_that_waits(
    outage_ends: Callable[[RecurringQueue, tuple[Outage, ...]], None],
    source: RecurringQueue,
    gaps: tuple[Outage, ...],
) -> None:
    held, source.messages.queue.held = source.messages.queue.held, set()
    outage_ends(source, gaps)
    source.messages.queue.held = held


RULES_OF_GAPS = (
    Mutant(
        "gap overtaken",
        "a fire is taken while the gap is written that it lies in, and what follows on it there is never sent",
        breaks="I1",
        patches=(Patch(RecurringQueue, "gap_ends", returning(None)),),
        killed_by=f"{TESTS}::test_given_a_fire_that_is_no_more_than_late_then_it_is_not_taken_while_the_gap_is_written",
    ),
    Mutant(
        "gap before what is read ahead",
        "a refused fire gives way to what follows on it before it is taken: a gap begins before both, and what follows is never sent",
        breaks="I1",
        patches=(Patch(Templates, "load", around(giving_way_as_it_is_read_ahead)),),
        killed_by=f"{TESTS}::test_given_a_fire_that_was_refused_before_the_outage_was_known_then_what_follows_on_it_there_is_delivered",
    ),
    Mutant(
        "left out of both versions",
        "what a request holds is made anew for a gap that ends meanwhile: what that leaves out is counted for both versions",
        breaks="I8",
        patches=(Patch(RecurringQueue, "outage_ends", around(making_anew_all_that_waits)),),
        killed_by=f"{TESTS}::test_given_a_silence_amid_a_request_then_what_is_left_out_of_it_is_told_and_counted_once[update-10-False]",
    ),
)
