"""Planted bugs in the rules of a message's life (docs/internals/protocol.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, around, instead, operation_returning, returning
from tidegate_core.messages.one_shot import create_writer
from tidegate_core.messages.wire import delivery_retries
from tidegate_core.messages.wire.checkpoints import Checkpoints
from tidegate_core.messages.wire.due_queue import DueQueue
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.messages.wire.withheld_rows import UncommittedCreates
from tidegate_core.rows.store_operations import Check, Delete, Put, Transaction
from tidegate_core.shard.outages import outage_recorder


def without_siblings(take_loaded: Callable[..., None], messages: Any, timer: Any, **named: bool) -> None:
    messages.queue.of = lambda message_id: []
    try:
        take_loaded(messages, timer, **named)
    finally:
        del messages.queue.of


def leaving_first(retry: Callable[..., Transaction], *arguments: Any, **named: Any) -> Transaction:
    """The move deletes the old row, and does not write the new one: a second transaction would."""
    whole = retry(*arguments, **named)
    return replace(whole, actions=tuple(each for each in whole.actions if not isinstance(each, Put)))


def unfenced_of(*, stored: bool) -> Callable[[Callable[..., Transaction]], Callable[..., Transaction]]:
    """Returns a patch: the move of a stored message, or else of a fire, to its next attempt does not check the epoch."""

    def unfenced(retry: Callable[..., Transaction]) -> Callable[..., Transaction]:
        def retried(*arguments: Any, **named: Any) -> Transaction:
            fenced = retry(*arguments, **named)
            if stored != any(isinstance(each, Delete) for each in fenced.actions):
                return fenced
            return replace(fenced, actions=tuple(each for each in fenced.actions if not isinstance(each, Check)))

        return retried

    return unfenced


RULES_OF_MESSAGES = (
    Mutant(
        "bound at the taking",
        "what was taken before I8's bound was reached is sent behind it, once its payloads are read",
        breaks="I8",
        patches=(Patch(Checkpoints, "split_at_bound", instead(lambda _checkpoints, wanted: (wanted, []))),),
        killed_by="unit/tidegate_core/messages/wire/test_checkpoints.py::test_given_payloads_and_checkpoints_that_get_no_answer_then_what_was_taken_before_keeps_the_bound_too",
    ),
    Mutant(
        "late fires go on",
        "an owner that stood still sends what it missed, one by one, before it has written down that it was away",
        breaks="I1",
        patches=(Patch(DueQueue, "_is_late_fire", returning(False)),),
        killed_by="unit/tidegate_core/messages/recurring/test_recurring_silence.py::test_given_a_process_that_stood_still_then_one_delivery_stands_for_all_that_was_missed[a crash with the fact]",
    ),
    Mutant(
        "gap of a silence",
        "an owner that stood still writes down that it was away, and sends what it missed one by one",
        breaks="I1",
        patches=(Patch(outage_recorder, "with_gap", returning([])),),
        killed_by="unit/tidegate_core/messages/recurring/test_recurring_silence.py::test_given_more_than_may_be_sent_without_a_checkpoint_then_one_delivery_stands_for_the_rest[go on]",
    ),
    Mutant(
        "refused version",
        "rows of a create that was refused in a replay come late, and are sent",
        breaks="I8",
        patches=(Patch(create_writer, "_cover_refused", operation_returning(())),),
        killed_by="unit/tidegate_core/messages/one_shot/test_replacing.py::test_given_a_record_that_was_refused_then_rows_of_it_that_come_late_are_not_sent[older]",
    ),
    Mutant(
        "position not durable",
        "a message is sent, and passed, while its create may come again",
        breaks="I8",
        patches=(Patch(UncommittedCreates, "_reason", returning(None)),),
        killed_by="unit/tidegate_core/messages/one_shot/test_sending_replays.py::test_given_a_create_whose_position_is_not_durable_then_it_is_not_delivered_yet",
    ),
    Mutant(
        "slot in the past",
        "a late create gets a slot that a checkpoint has passed, and no successor finds it",
        breaks="I8",
        patches=(Patch(Checkpoints, "slot_for", instead(lambda checkpoints, nominal: nominal)),),
        killed_by="unit/tidegate_core/messages/one_shot/test_sending_replays.py::test_given_a_replay_whose_slot_was_passed_meanwhile_then_it_moves_to_a_new_one",
    ),
    Mutant(
        "two slots",
        "rows of one message at two slots are both sent",
        breaks="I8",
        patches=(Patch(ShardMessages, "add_loaded_row", around(without_siblings)),),
        killed_by="unit/tidegate_core/messages/one_shot/test_sending_replays.py::test_given_a_late_row_of_a_former_owner_at_another_slot_then_the_message_is_delivered_once",
    ),
    Mutant(
        "on the wire",
        "a replacement is acknowledged while the older version is on its way",
        breaks="I7",
        patches=(Patch(create_writer, "_wait_for_the_wire", operation_returning(())),),
        killed_by="unit/tidegate_core/messages/one_shot/test_replacing.py::test_given_an_older_version_on_the_wire_then_the_row_that_answers_for_the_newer_one_comes_behind_it",
    ),
    Mutant(
        "half a move",
        "a refused message leaves its place before its next attempt has one in the store",
        breaks="I8",
        patches=(Patch(delivery_retries, "retry", around(leaving_first)),),
        killed_by="unit/tidegate_core/messages/wire/test_delivery_retries.py::test_given_a_crash_between_attempts_then_the_successor_goes_on_with_the_next_one",
    ),
    Mutant(
        "retry unfenced",
        "a former owner gives a next attempt to a refused message that its successor has sent from its place",
        breaks="I8",
        patches=(Patch(delivery_retries, "retry", unfenced_of(stored=True)),),
        killed_by="unit/tidegate_core/messages/wire/test_delivery_retries.py::test_given_two_take_overs_within_the_pause_then_what_the_first_owner_had_sent_does_not_bring_the_message_again",
    ),
)
