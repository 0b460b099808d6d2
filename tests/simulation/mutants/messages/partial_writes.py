"""Planted bugs in the rule of half-written messages without a key (docs/internals/protocol.md).

Two records of one id share the keys of their rows, except for the instant.
"""

from __future__ import annotations

from tests.simulation.mutants.mutant import Mutant, Patch, returning
from tidegate_core.messages.one_shot import create_writer

TESTS = "unit/tidegate_core/messages/one_shot/test_half_written.py"


RULES_OF_HALVES = (
    Mutant(
        "half of another record",
        "the timer row of a record that came to nothing wakes the message of another record of its id, before its time",
        breaks="I3",
        patches=(Patch(create_writer, "_is_written_behind_its_message", returning(False)),),
        killed_by=f"{TESTS}::test_given_a_timer_row_without_its_message_then_another_record_of_the_id_is_sent_once_at_its_own_time[the other is later-beyond the window-False]",
    ),
    Mutant(
        "half of another record, once more",
        "the timer row of a record that came to nothing wakes the message of another record of its id, which was sent before",
        breaks="I8",
        patches=(Patch(create_writer, "_is_written_behind_its_message", returning(False)),),
        killed_by=f"{TESTS}::test_given_a_timer_row_without_its_message_then_another_record_of_the_id_is_sent_once_at_its_own_time[the other is earlier-in the window-True]",
    ),
)
