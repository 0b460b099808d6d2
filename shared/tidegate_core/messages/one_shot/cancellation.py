"""Applies requests about messages from the inbox: cancels, and creates that another owner read.

`InboxMessages` calls it in the scheduler's turn. It raises message fences, removes timer rows, and writes and publishes receipts.
It keeps invariant I7: a message whose cancel was answered `cancelled` is not delivered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidegate_core.engine.actor_context import InvalidEffect
from tidegate_core.engine.operations import Operation
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import MessageCancel, MessageSend
from tidegate_core.language.values.derived_ids import PRINTED_ID
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import Problem, RefusedRecord
from tidegate_core.messages.one_shot.create_lookup import PendingCreate
from tidegate_core.messages.one_shot.create_writer import (
    StaysInInbox,
    cannot_be_kept,
    produce,
    publish_answers,
    publish_receipts,
    send_messages,
)
from tidegate_core.messages.one_shot.withdrawal import (
    is_too_late,
    raise_to,
    raised_over,
    remove_from_queue,
    versions_of,
    withdraw,
)
from tidegate_core.messages.wire.message_record import refused_letter_of, tell_dead_lettered
from tidegate_core.messages.wire.row_expiry import write
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.messages.wire.withheld_rows import read_fences
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import FOR_EVER, Message, MessageFence, MessageName
from tidegate_core.rows.receipt import RECEIPT_DAYS, StoredReceipt, expiry, subject_of, used_otherwise
from tidegate_core.rows.store_operations import Delete, Put

CANCEL_MARK = "\x1f"
"""Marks the id of a cancel in the fence that it raised. No id contains this character, so no send has the same text."""


def apply_inboxed(
    messages: ShardMessages, rows: Sequence[InboxRow], stays_in_inbox: StaysInInbox
) -> Operation[list[tuple[InboxRow, RefusedRecord]]]:
    """Applies inbox rows of kind `M`, in order. At the end their effects are durable and their receipts are published.

    Receipts of cancels are published together. After an outage there are many, and a broker that loses acknowledgements takes
    seconds for each.

    Returns:
        Rows that become dead letters, each with the reason.
    """
    refusals: list[tuple[InboxRow, RefusedRecord]] = []
    sends: list[PendingCreate] = []
    answers: list[tuple[str, bytes]] = []
    by_origin = {Position.parse(row.origin): row for row in rows}

    def send() -> Operation[None]:
        unkept = yield from send_messages(messages, sends, stays_in_inbox)
        refusals.extend((by_origin[each.sending.position], each.refused) for each in unkept)
        sends.clear()

    for row in rows:
        try:
            request = parse_request(row.request)
        except RefusedRecord as refused:
            # The node that read the record accepted it: only a newer grammar leads here, during a rolling downgrade.
            refusals.append((row, refused))
            continue
        if isinstance(request, MessageSend):
            sends.append(PendingCreate(request, Position.parse(row.origin), replay=True))
            continue
        assert isinstance(request, MessageCancel)
        yield from send()
        try:
            answers.append((yield from _answer(messages, request, row.origin)))
        except InvalidEffect as error:
            messages.host.failed("cancel", row.origin, error)
            refusals.append((row, cannot_be_kept(request, error)))
    yield from send()
    yield from publish_answers(messages, answers)
    return refusals


def dead_letter(messages: ShardMessages, row: InboxRow, refused: RefusedRecord) -> Operation[None]:
    """Produces the dead letter of a refused request, and a `rejected` receipt if the request id is readable."""
    yield from produce(messages, [refused_letter_of(messages.host, row.request, Position.parse(row.origin), refused)])
    tell_dead_lettered(messages.host, row.origin, refused.error_class, str(refused))
    if refused.request_id is not None:
        receipt = Receipt.model_construct(
            request_id=refused.request_id,
            status=ReceiptStatus.REJECTED,
            namespace=refused.namespace,
            name=refused.key,
            errors=refused.problems,
            at=messages.host.now,
        )
        yield from publish_receipts(messages, [receipt])


def _answer(messages: ShardMessages, request: MessageCancel, origin: str) -> Operation[tuple[str, bytes]]:
    """Returns the request id and the receipt of a cancel.

    A repeat gets the stored receipt, whichever release wrote it. Otherwise the cancel is applied, and its receipt is stored
    before it is published.
    """
    request_id = request.id or f"@{origin}"
    key = keys.receipt(messages.shard, request.namespace, request_id)
    found = yield from messages.host.read_for_good(Read((key,)))
    assert isinstance(found, Items)
    item = found.found.get(key)
    if item is not None:
        stored = from_item(StoredReceipt, item)
        if stored.subject != subject_of(request):
            return request_id, used_otherwise(request, request_id, messages.host.now).to_json()
        return request_id, stored.body.encode()
    status, errors = yield from _cancel(messages, request, origin)
    if status is ReceiptStatus.REJECTED:
        # Not stored: this id belongs to the send, and a query for the id gets the answer of the send.
        return request_id, used_otherwise(request, request_id, messages.host.now).to_json()
    receipt = Receipt.model_construct(
        request_id=request_id,
        status=status,
        namespace=request.namespace,
        name=request.key,
        id=request.message_id,
        errors=errors,
        at=messages.host.now,
    )
    row = StoredReceipt(
        request_id=request_id,
        namespace=request.namespace,
        subject=subject_of(request),
        body=receipt.to_json().decode(),
        expires_at=expiry(messages.host.now, RECEIPT_DAYS),
    )
    yield from write(messages.host, "receipt", [Put(key, {**to_item(row, key), "rev": 1})])
    return request_id, row.body.encode()


def _answered_before(
    messages: ShardMessages, request: MessageCancel, fence: MessageFence, *, is_theirs: bool
) -> Operation[ReceiptStatus | None]:
    """Returns the answer of the cancel that raised the fence, if that cancel had an id and its answer told the message's outcome.

    A printed id may belong to another namespace, where a cancel may have the same id. So the receipt counts only if this
    namespace has versions of the message (`is_theirs`), or if the receipt is about the same name.
    """
    if fence.request_id is None or not fence.request_id.startswith(CANCEL_MARK):
        return None
    key = keys.receipt(messages.shard, request.namespace, fence.request_id.removeprefix(CANCEL_MARK))
    found = yield from messages.host.read_for_good(Read((key,)))
    assert isinstance(found, Items)
    item = found.found.get(key)
    if item is None:
        return None
    stored = from_item(StoredReceipt, item)
    if not is_theirs and stored.subject != subject_of(request):
        return None
    told = (ReceiptStatus.CANCELLED, ReceiptStatus.TOO_LATE)
    return next((status for status in told if status == json.loads(stored.body)["status"]), None)


def named(request: MessageCancel) -> tuple[MessageName, ...]:
    """Returns the names that a cancel may mean: the message's key, or the request id of its send.

    A text in the form of a printed id also means that id, if no send has the text as its request id.
    """
    if request.key is not None:
        return (MessageName.of_key(request.namespace, request.key),)
    message_id = request.message_id or ""
    by_request = MessageName.of_request(request.namespace, message_id)
    printed = PRINTED_ID.fullmatch(message_id)
    return (by_request,) if printed is None else (by_request, MessageName(printed[2], False))


class _Meant(NamedTuple):
    """The stored message that a cancel means.

    Attributes:
        is_printed: The cancel names a printed id, which may belong to any namespace; the fence does not tell which one.
        versions: Versions in the namespace of the cancel.
    """

    name: MessageName
    is_printed: bool
    fence: MessageFence | None
    versions: list[Message]


def _look_up(messages: ShardMessages, request: MessageCancel, origin: str) -> Operation[_Meant]:
    by_request, *printed = named(request)
    fences = yield from read_fences(messages.host, messages.shard, [name.id for name in (by_request, *printed)])
    meant = yield from _as_stored(messages, request, by_request, fences)
    # A cancel does not mean messages that were sent after it; such a send may use the text of a printed id.
    is_known = meant.fence is not None or any(each.origin < origin for each in meant.versions)
    if is_known or not printed:
        return meant
    return (yield from _as_stored(messages, request, printed[0], fences))._replace(is_printed=True)


def _as_stored(
    messages: ShardMessages, request: MessageCancel, name: MessageName, fences: Mapping[str, MessageFence]
) -> Operation[_Meant]:
    fence = fences.get(name.id)
    versions = yield from versions_of(messages, name.id, fence)
    return _Meant(name, False, fence, [each for each in versions if each.namespace == request.namespace])


def _was_sent_under_its_id(message: Message, request: MessageCancel, name: MessageName) -> bool:
    """Returns whether the send of the message has the id of the cancel. Without a key, the name contains the id of the send."""
    if request.id is None:
        return False
    if name.keyed:
        return message.request_id == request.id
    return MessageName.of_request(request.namespace, request.id).id == name.id


def _cancel(
    messages: ShardMessages, request: MessageCancel, origin: str
) -> Operation[tuple[ReceiptStatus, tuple[Problem, ...]]]:
    """Raises the fence first, then withdraws the versions that it covers: a later load reads the fence.

    `rejected` changes nothing: the id of the cancel belongs to the send of the message that it names.
    """
    name, is_printed, fence, versions = yield from _look_up(messages, request, origin)
    # A cancel by key ends earlier sends. An id is never used again, so a cancel by id holds for ever.
    live_from = origin if name.keyed else FOR_EVER
    raised_by = None if request.id is None else f"{CANCEL_MARK}{request.id}"
    if fence is not None and raised_by is not None and fence.request_id == raised_by:
        # A later record of the same request was applied before this one: this one answers for the same versions.
        live_from = max(live_from, fence.live_from)
    before = raised_over(fence, live_from)
    again = fence is not None and fence.live_from == live_from
    behind = fence is not None and fence.live_from > live_from
    if any(message.origin < origin and _was_sent_under_its_id(message, request, name) for message in versions):
        # An accepted send has no stored receipt, so its rows show its id. Once they are gone, nothing is left to withdraw.
        return ReceiptStatus.REJECTED, ()
    if again and fence is not None and fence.request_id != raised_by:
        # An earlier cancel of the message was answered: this one gets the same answer, however long the message is due.
        status = yield from _answered_before(messages, request, fence, is_theirs=bool(versions))
        if status is not None:
            return status, ()
    if behind:
        # A younger record of the key was applied first. Its higher fence hides the version that this cancel means: the newest
        # version before the cancel.
        covered = [message for message in versions if message.version < live_from][:1]
    else:
        covered = [each for each in versions if before <= each.version < live_from or _came_too_late(fence, each)]
    if again and not covered and not is_printed and fence is not None and fence.through is not None:
        # The first try withdrew the versions; then the earlier create was replayed too, and removed their rows.
        return ReceiptStatus.CANCELLED, ()
    if not versions and is_printed:
        # A message with this printed id would have rows: the id belongs to another namespace, or to a message with a key.
        hint = "a message under a key is cancelled by its key"
        return ReceiptStatus.NOT_FOUND, (Problem("message_id", "is not the id of a message without key", hint),)
    through = max((message.slot for message in covered), default=None)
    messages.queue.being_cancelled = frozenset((message.id, message.version) for message in covered)
    try:
        late = fence.late if fence is not None and (again or behind) else (yield from _too_late(messages, covered))
        yield from raise_to(messages, name.id, live_from, fence, versions, raised_by, through, late)
    finally:
        messages.queue.being_cancelled = frozenset()
        messages.host.operations.raise_(messages.changed)
    taken = [message for message in covered if message.version not in late]
    # In one step: the read of held messages takes time, in which a removed row may be forgotten and look as if it was sent.
    results = {message.version: remove_from_queue(messages, message) for message in taken}
    # Includes versions below an earlier fence: the replacement that raised it may have crashed before it discarded them.
    held = yield from messages.holding.discard(
        [message for message in versions if message.version < live_from and message.version not in late]
    )
    if not covered:
        return ReceiptStatus.NOT_FOUND, ()
    sent = [
        message
        for message in taken
        if (
            held[message.version]
            if message.version in held
            else not withdraw(messages, message, results[message.version], counted=again or behind)
        )
    ]
    timers = [Delete(keys.message_timer(messages.shard, each.slot, each.id, each.version)) for each in taken]
    yield from write(messages.host, "cancel", timers)
    # If a younger request has withdrawn a version, no row tells whether the version was sent before.
    is_late = len(taken) < len(covered) or (behind and bool(sent))
    return ReceiptStatus.TOO_LATE if is_late else ReceiptStatus.CANCELLED, ()


def _came_too_late(fence: MessageFence | None, message: Message) -> bool:
    """Returns whether an earlier cancel came too late for this version: it is still delivered, although the fence is above it."""
    return fence is not None and message.version in fence.late


def _too_late(messages: ShardMessages, covered: Sequence[Message]) -> Operation[frozenset[str]]:
    """Returns the versions for which a cancel comes too late.

    The fence names them and does not cover them: after `too_late`, they are delivered or become dead letters.
    """
    yield from messages.next_attempts.learn(covered)
    held = yield from messages.holding.maybe_sent(covered)
    return frozenset(each.version for each in covered if is_too_late(messages, each, held.get(each.version)))
