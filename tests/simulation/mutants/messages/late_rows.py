"""Planted bugs in the treatment of a late second row of a message, which is loaded closed (docs/internals/protocol.md, A message's life).

A former owner, frozen while it made the rows of a create, puts them at another slot, behind all that its successor sends.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.mutants.mutant import Mutant, Patch, around
from tidegate_core.messages.wire.due_queue import DueQueue, QueuedMessage

TESTS = "unit/tidegate_core/messages/one_shot/test_doubles.py"
Add = Callable[[DueQueue, QueuedMessage], bool]


def believing_it(add: Add, slots: DueQueue, row: QueuedMessage) -> bool:
    row.double = False
    return add(slots, row)


LATE_ROWS = (
    Mutant(
        "late row left out",
        "a late row is not taken in, no checkpoint passes it, and the next owner sends its message again",
        breaks="I8",
        patches=(Patch(DueQueue, "add", lambda add: lambda slots, row: False if row.double else add(slots, row)),),
        killed_by=f"{TESTS}::test_given_two_rows_then_the_position_passes_both_and_nobody_sends_the_second",
    ),
    Mutant(
        "late row believed",
        "a late row that is closed passes for a message that was taken back",
        breaks="I7",
        patches=(Patch(DueQueue, "add", around(believing_it)),),
        killed_by=f"{TESTS}::test_given_a_second_row_that_is_still_there_when_the_first_one_was_passed_then_a_cancel_is_too_late",
    ),
)
