"""Planted bugs in the withdrawal of a message that its broker refused and that moved ahead, or that is loaded while its guard is
raised (docs/internals/protocol.md).
"""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.mutants.mutant import Mutant, Patch, around, instead, operation_returning, returning
from tidegate_core.messages.one_shot import cancellation, withdrawal
from tidegate_core.messages.one_shot.withdrawal import WithdrawalResult
from tidegate_core.messages.wire import delivery_retries, shard_messages
from tidegate_core.messages.wire.due_queue import QueuedMessage, Stage
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.messages.wire.timer_window import NextAttempts
from tidegate_core.messages.wire.withheld_rows import MessageFences
from tidegate_core.rows.message import Message, MessageFence, MessageTimer

TESTS = "unit/tidegate_core/messages/one_shot/test_cancelling_tally.py"
NO_ROOM = Patch(shard_messages, "ROWS_MAX", instead(0))
"""The shard keeps no row in memory that is not due yet."""


def as_the_store_says(guards: MessageFences, found: MessageFence | None, version: str) -> bool:
    return found is not None and found.covers(version)


def withdrawn_where_it_was(
    move_on: Callable[..., None], messages: ShardMessages, row: QueuedMessage, timer: MessageTimer
) -> None:
    if row.occurrence is None and messages.has_ended(row):
        messages.withdraw(row)
    else:
        move_on(messages, row, timer)


def taken_for_withdrawn(
    take_out: Callable[..., WithdrawalResult], messages: ShardMessages, message: Message
) -> WithdrawalResult:
    fate, rows = take_out(messages, message), messages.queue.of(message.id)
    if rows and all(row.stage is Stage.GONE for row in rows):
        return WithdrawalResult(not fate.maybe_sent, fate.maybe_sent)
    return fate


RULES_OF_FATES = (
    Mutant(
        "kept out by what is being raised",
        "a message that is loaded while its guard is raised is not in memory when that is known: a replacement takes it for sent",
        breaks="I8",
        patches=(Patch(MessageFences, "keep_out", instead(as_the_store_says)),),
        killed_by=f"{TESTS}::test_given_a_guard_that_is_being_raised_then_it_keeps_out_what_it_covered_before_and_what_it_refuses",
    ),
    Mutant(
        "next attempts forgotten",
        "a refused message whose next attempt had no room in memory passes for sent, and its cancel keeps it from ever being sent",
        breaks="I8",
        patches=(Patch(NextAttempts, "of", returning(None)),),
        beside=(NO_ROOM,),
        killed_by=f"{TESTS}::test_given_a_refused_message_whose_next_attempt_has_no_room_in_memory_then_its_cancel_is_counted[passed-by id]",
    ),
    Mutant(
        "next attempts of predecessors",
        "a refused message whose next attempt a successor has not loaded passes for sent, and its cancel keeps it from ever being sent",
        breaks="I8",
        patches=(Patch(NextAttempts, "learn", operation_returning(None)),),
        killed_by=f"{TESTS}::test_given_a_refused_message_whose_next_attempt_is_far_then_a_successor_cancels_what_nobody_has_sent[refused-by id]",
    ),
    Mutant(
        "gone, and withdrawn",
        "a refused message that has left memory is answered cancelled, and counted as nothing",
        breaks="I8",
        patches=(
            Patch(withdrawal, "remove_from_queue", around(taken_for_withdrawn)),
            Patch(cancellation, "remove_from_queue", around(taken_for_withdrawn)),
        ),
        beside=(NO_ROOM,),
        killed_by=f"{TESTS}::test_given_a_refused_message_whose_next_attempt_has_no_room_in_memory_then_its_cancel_is_counted[not passed yet-by id]",
    ),
    Mutant(
        "withdrawn at both places",
        "a refused message that is loaded at its new place before its move is known is counted as cancelled twice",
        breaks="I8",
        patches=(Patch(delivery_retries, "_move_on", around(withdrawn_where_it_was)),),
        killed_by=f"{TESTS}::test_given_a_refused_message_that_is_loaded_at_its_next_slot_before_its_move_is_answered_then_it_is_counted_once[unsent-by id]",
    ),
)
