"""Planted bugs in the answer to a cancel, and in what a cancel covers (docs/internals/protocol.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, around, instead, returning
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest.request_ingest import RequestIngest
from tidegate_core.messages import message_scheduler
from tidegate_core.messages.one_shot import cancellation, withdrawal
from tidegate_core.messages.wire import delivery_retries
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.messages.wire.withheld_rows import MessageFences
from tidegate_core.rows.message import Message, MessageTimer

LONG_AGO_MS = 10**12


def by_its_time(messages: ShardMessages, message: Message) -> bool:
    return messages.is_checkpointed(message.nominal, message.id, message.version)


def as_if_unsent(original: Callable[..., MessageTimer]) -> Any:
    return lambda row, message, slot: replace(original(row, message, slot), maybe_sent=None)


def above_what_is_told(ingest: RequestIngest, record: LogRecord) -> bool:
    return record.offset < max(ingest._log_end or 0, ingest._begun_through)


def covering_all(original: Callable[..., Any], *arguments: Any) -> Any:
    *others, _late = arguments
    return original(*others)


RULES_OF_CANCELS = (
    Mutant(
        "log end untold",
        "while brokers do not tell where the requests end, a successor takes what it reads again for new: what was cancelled is sent",
        breaks="I7",
        patches=(Patch(RequestIngest, "_may_be_written", instead(above_what_is_told)),),
        killed_by="unit/tidegate_core/messages/one_shot/test_sending_replays.py::test_given_a_cancel_by_printed_id_of_a_create_without_an_id_then_its_replay_finds_it_cancelled[True]",
    ),
    Mutant(
        "guards in memory",
        "a cancel that comes while a page is loaded is not known to whoever takes the page in",
        breaks="I7",
        patches=(Patch(MessageFences, "cover", returning(False)),),
        killed_by="unit/tidegate_core/messages/one_shot/test_cancellation.py::test_given_a_message_that_is_due_while_its_payload_is_read_then_its_cancel_takes_it_back",
    ),
    Mutant(
        "maybe sent",
        "an owner takes for unsent what its predecessor may have sent",
        breaks="I7",
        patches=(Patch(message_scheduler, "CLOCKS_APART_MS", instead(-LONG_AGO_MS)),),
        killed_by="unit/tidegate_core/messages/one_shot/test_cancellation.py::test_given_a_message_that_a_predecessor_may_have_sent_then_its_cancel_is_too_late[the successor's clock is behind]",
    ),
    Mutant(
        "maybe sent before its slot",
        "a message that its owner may have sent, and had moved to a later slot, is a successor's to cancel",
        breaks="I7",
        patches=(Patch(delivery_retries, "_next_timer", as_if_unsent),),
        killed_by="unit/tidegate_core/messages/one_shot/test_moved_rows.py::test_given_a_delivery_without_an_answer_and_a_refused_one_then_a_successor_answers_its_cancel_too_late",
    ),
    Mutant(
        "too late, and withdrawn",
        "a cancel is answered too_late, its guard covers the message all the same, and a send that fails then is not tried again",
        breaks="I8",
        patches=(Patch(cancellation, "raise_to", around(covering_all)),),
        killed_by="unit/tidegate_core/messages/one_shot/test_cancelling_too_late.py::test_given_a_send_that_fails_after_its_cancel_was_too_late_then_it_is_delivered_once_it_can_be[the topic does not exist-by id]",
    ),
    Mutant(
        "of before, or passed",
        "a message that lies beyond what is loaded is taken for sent, because its time has passed",
        breaks="I8",
        patches=(Patch(withdrawal, "_is_passed", instead(by_its_time)),),
        killed_by="unit/tidegate_core/messages/one_shot/test_cancellation.py::test_given_a_message_of_the_past_beyond_what_is_loaded_then_its_cancel_takes_it_back",
    ),
)
