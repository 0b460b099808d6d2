"""What came through the inbox: creates that another holder read, and cancels (DESIGN 5, I7)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidegate_core.engine.actor_context import InvalidEffect
from tidegate_core.engine.operations import Operation
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import MessageCancel, MessageSend
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import Problem, RefusedRecord
from tidegate_core.language.values.shard_hash import PRINTED_ID
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
"""In front of a cancel's id in the guard that it has raised: ids hold no such character, so no send's is like it."""


def apply_inboxed(
    messages: ShardMessages, rows: Sequence[InboxRow], stays_in_inbox: StaysInInbox
) -> Operation[list[tuple[InboxRow, RefusedRecord]]]:
    """Applies inbox rows of kind `M`, in order; at the end everything they asked for is durable, and answered.

    Cancels are answered together: behind an outage there are many, and a broker whose acknowledgements get lost takes seconds for each.

    Returns:
        Those that are to be buried, each with the reason.
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
            # Whoever read it accepted it; only a newer node's grammar can lead here (rolling downgrade).
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
    """Nothing is dropped silently: a dead letter, and the sender is told where the request's id can be read."""
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
    """Returns the request id and its receipt: of a repeat what is stored, whichever release wrote it, else what the cancel comes to, stored
    before anybody hears of it.
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
        # Not stored: who asks under this id asks for the send's answer.
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
    messages: ShardMessages, request: MessageCancel, guard: MessageFence, *, is_theirs: bool
) -> Operation[ReceiptStatus | None]:
    """Returns what the cancel that raised the guard was answered, if it had an id and said what became of the message.

    A printed id may be another namespace's, whose cancel may have the id of one of this namespace's: its receipt counts where there
    are rows of the namespace's own (`is_theirs`), or where it is about the same message by the same name.
    """
    if guard.request_id is None or not guard.request_id.startswith(CANCEL_MARK):
        return None
    key = keys.receipt(messages.shard, request.namespace, guard.request_id.removeprefix(CANCEL_MARK))
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
    """Returns which message is meant: by key, or by the request id of its send. A text that has the form of a printed id may be that,
    where no send has it.
    """
    if request.key is not None:
        return (MessageName.of_key(request.namespace, request.key),)
    message_id = request.message_id or ""
    by_request = MessageName.of_request(request.namespace, message_id)
    printed = PRINTED_ID.fullmatch(message_id)
    return (by_request,) if printed is None else (by_request, MessageName(printed[2], False))


class _Meant(NamedTuple):
    """What a cancel is about, as it is stored.

    Attributes:
        is_printed: It is named by an id that was printed, which may be of any namespace: its guard does not say whose it is.
        versions: Of the cancel's namespace.
    """

    name: MessageName
    is_printed: bool
    guard: MessageFence | None
    versions: list[Message]


def _look_up(messages: ShardMessages, request: MessageCancel, origin: str) -> Operation[_Meant]:
    by_request, *printed = named(request)
    guards = yield from read_fences(messages.host, messages.shard, [name.id for name in (by_request, *printed)])
    meant = yield from _as_stored(messages, request, by_request, guards)
    # What was sent behind the cancel is not what it is about; a printed id may be used again for that.
    is_known = meant.guard is not None or any(each.origin < origin for each in meant.versions)
    if is_known or not printed:
        return meant
    return (yield from _as_stored(messages, request, printed[0], guards))._replace(is_printed=True)


def _as_stored(
    messages: ShardMessages, request: MessageCancel, name: MessageName, guards: Mapping[str, MessageFence]
) -> Operation[_Meant]:
    guard = guards.get(name.id)
    versions = yield from versions_of(messages, name.id, guard)
    return _Meant(name, False, guard, [each for each in versions if each.namespace == request.namespace])


def _was_sent_under_its_id(message: Message, request: MessageCancel, name: MessageName) -> bool:
    """Whether the message's send bears the cancel's own id. Of one without a key its name tells the send's."""
    if request.id is None:
        return False
    if name.keyed:
        return message.request_id == request.id
    return MessageName.of_request(request.namespace, request.id).id == name.id


def _cancel(
    messages: ShardMessages, request: MessageCancel, origin: str
) -> Operation[tuple[ReceiptStatus, tuple[Problem, ...]]]:
    """First the guard, then what it covers: whoever loads a row after this reads the guard. `rejected` has touched nothing: its id was used
    for the send of what it names.
    """
    name, is_printed, guard, versions = yield from _look_up(messages, request, origin)
    # A cancel by key ends what was sent before it; an id is never used again, so its cancel holds for ever.
    live_from = origin if name.keyed else FOR_EVER
    raised_by = None if request.id is None else f"{CANCEL_MARK}{request.id}"
    if guard is not None and raised_by is not None and guard.request_id == raised_by:
        # A later record of the same request was dealt with before this one: what it covers is what this one is answered for.
        live_from = max(live_from, guard.live_from)
    before = raised_over(guard, live_from)
    again = guard is not None and guard.live_from == live_from
    behind = guard is not None and guard.live_from > live_from
    if any(message.origin < origin and _was_sent_under_its_id(message, request, name) for message in versions):
        # An accepted send has no receipt that would tell: its rows do. Where they are gone nothing is left to take back.
        return ReceiptStatus.REJECTED, ()
    if again and guard is not None and guard.request_id != raised_by:
        # Another cancel of the same message came before: whatever it was told is so, however long ago its time was.
        status = yield from _answered_before(messages, request, guard, is_theirs=bool(versions))
        if status is not None:
            return status, ()
    if behind:
        # A younger record of the key was dealt with before this one, or before it was done again: that the guard is above it
        # hides what it was about, which is what was the newest then.
        covered = [message for message in versions if message.version < live_from][:1]
    else:
        covered = [each for each in versions if before <= each.version < live_from or _came_too_late(guard, each)]
    if again and not covered and not is_printed and guard is not None and guard.through is not None:
        # What it took back the first time was removed by the create in front of it, which was done again as well.
        return ReceiptStatus.CANCELLED, ()
    if not versions and is_printed:
        # It would be there if it was printed, or sent under: it belongs to somebody else, or to a message under a key.
        hint = "a message under a key is cancelled by its key"
        return ReceiptStatus.NOT_FOUND, (Problem("message_id", "is not the id of a message without key", hint),)
    through = max((message.slot for message in covered), default=None)
    messages.slots.asked_back = frozenset((message.id, message.version) for message in covered)
    try:
        late = guard.late if guard is not None and (again or behind) else (yield from _too_late(messages, covered))
        yield from raise_to(messages, name.id, live_from, guard, versions, raised_by, through, late)
    finally:
        messages.slots.asked_back = frozenset()
        messages.host.operations.raise_(messages.changed)
    taken = [message for message in covered if message.version not in late]
    # Without a pause: by the time at which it is known what is held back, what was taken out may be forgotten, and look as if sent.
    fates = {message.version: remove_from_queue(messages, message) for message in taken}
    # Also of what an earlier guard covers: the replacement that raised it may have fallen before it came to that.
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
            else not withdraw(messages, message, fates[message.version], counted=again or behind)
        )
    ]
    timers = [Delete(keys.message_timer(messages.shard, each.slot, each.id, each.version)) for each in taken]
    yield from write(messages.host, "cancel", timers)
    # Of what a younger request has taken back, nobody has written down whether it was sent before that.
    is_late = len(taken) < len(covered) or (behind and bool(sent))
    return ReceiptStatus.TOO_LATE if is_late else ReceiptStatus.CANCELLED, ()


def _came_too_late(guard: MessageFence | None, message: Message) -> bool:
    """Whether an earlier cancel came too late for it: it is still to be delivered, for all that its guard says."""
    return guard is not None and message.version in guard.late


def _too_late(messages: ShardMessages, covered: Sequence[Message]) -> Operation[frozenset[str]]:
    """Returns the versions for which a cancel comes too late. Its guard leaves them alone, and says so: whoever was told `too_late` finds
    them delivered, or among the dead letters.
    """
    yield from messages.next_attempts.learn(covered)
    held = yield from messages.holding.maybe_sent(covered)
    return frozenset(each.version for each in covered if is_too_late(messages, each, held.get(each.version)))
