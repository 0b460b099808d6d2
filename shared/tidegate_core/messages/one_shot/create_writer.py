"""Writes creates of messages: looks them up, raises the fences of replacements, writes their rows, and publishes receipts.

The scheduler calls it for creates of the log, and `cancellation` for creates of the inbox. It writes message, timer and key rows.
A receipt is published after the rows are durable; the message row itself answers a create that got no receipt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tidegate_core.engine.actor_context import InvalidEffect, InvalidWrite
from tidegate_core.engine.operations import Operation
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import MessageCancel, MessageSend
from tidegate_core.language.values.problems import Problem, RefusedRecord
from tidegate_core.messages.one_shot.create_lookup import Create, PendingCreate, Unkept, classify, look_up, name_of
from tidegate_core.messages.one_shot.withdrawal import (
    fence_version,
    raise_to,
    remove_from_queue,
    withdraw,
)
from tidegate_core.messages.wire.due_queue import QueuedMessage, Stage
from tidegate_core.messages.wire.message_record import WIRE_PATIENCE_MS
from tidegate_core.messages.wire.row_expiry import presence_expiry, row_expiry, write
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.messages.wire.withheld_rows import read_fences
from tidegate_core.rows import keys
from tidegate_core.rows.effects import NotProduced, Produce, Refused
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import Message, MessageFence, MessageKeyRow, MessageTimer, public_id
from tidegate_core.rows.store_operations import Delete, Put

RETRY_MS = 200
UNSENT = (Stage.READY, Stage.WRITTEN)
WIRE_CHECK_MS = 10
StaysInInbox: TypeAlias = Callable[[Create], bool]
"""Returns whether a repeat stays in the inbox until the record that it repeats is durable."""


def send_messages(
    messages: ShardMessages, creates: Sequence[PendingCreate], stays_in_inbox: StaysInInbox
) -> Operation[list[Unkept]]:
    """Makes creates durable; returns those that the store never takes. Two creates of one message are never in the same round."""
    unkept: list[Unkept] = []
    for group in _rounds(messages, creates):
        unkept += yield from _send_together(messages, group, stays_in_inbox)
    return unkept


def _send_together(
    messages: ShardMessages, creates: list[Create], stays_in_inbox: StaysInInbox
) -> Operation[list[Unkept]]:
    """Writes a round together. If the store refuses it, each create is written alone to find the invalid one."""
    try:
        yield from _send_round(messages, creates, stays_in_inbox)
    except InvalidEffect as error:
        if len(creates) == 1:
            return [_unkept(messages, creates[0].sending, error)]
    else:
        return []
    unkept: list[Unkept] = []
    for create in creates:
        unkept += yield from _send_together(messages, [create.again()], stays_in_inbox)
    return unkept


def _unkept(messages: ShardMessages, sending: PendingCreate, error: InvalidEffect) -> Unkept:
    messages.host.failed("messages", sending.position.text(), error)
    return Unkept(sending, cannot_be_kept(sending.request, error))


def cannot_be_kept(request: MessageSend | MessageCancel, error: InvalidEffect) -> RefusedRecord:
    """Returns the refusal of a request that the store never takes."""
    return RefusedRecord(
        [Problem("", "cannot be kept", str(error))],
        "too_large",
        request_id=request.id,
        type=request.type,
        namespace=request.namespace,
        key=request.key,
    )


def _rounds(messages: ShardMessages, creates: Sequence[PendingCreate]) -> list[list[Create]]:
    rounds: list[list[Create]] = []
    last_round: dict[str, int] = {}
    for sending in creates:
        name, version = name_of(messages, sending)
        number = last_round.get(name.id, -1) + 1
        last_round[name.id] = number
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(Create(sending, name, version, answered=version))
    return rounds


def _send_round(messages: ShardMessages, creates: list[Create], stays_in_inbox: StaysInInbox) -> Operation[None]:
    yield from look_up(messages, creates)
    for create in creates:
        classify(create)
    yield from _raise_fences(messages, [create for create in creates if create.replaces])
    # Before the rows of the replacement exist: a sender without a receipt takes the message row as the answer.
    yield from _wait_for_the_wire(messages, [create for create in creates if create.replaces])
    yield from _finish_earlier(messages, creates)
    yield from _cover_refused(messages, [create for create in creates if not stays_in_inbox(create)])
    rows = Rows()
    for create in creates:
        if create.status is ReceiptStatus.ACCEPTED and not _is_on_its_way(messages, create, rows.actions):
            _make_rows(messages, create, rows)
    for create in creates:
        refused = create.status is not ReceiptStatus.ACCEPTED
        own = [create.mine] if refused and create.mine is not None and create.mine.origin == create.origin else []
        for each in [*own, *create.left_behind]:
            is_covered = create.name.keyed and each.version < create.live_from
            _unmake_rows(messages, each, rows.actions, is_covered=is_covered)
    yield from _write_rows(messages, rows)
    yield from _answer(messages, creates)


def _write_rows(messages: ShardMessages, rows: Rows) -> Operation[None]:
    """Makes rows durable, and lets their messages wait for their slots. Raises InvalidWrite."""
    try:
        if rows.actions:
            yield from write(messages.host, "messages", rows.actions)
    except InvalidWrite:
        _give_back(messages, [*rows.made, *rows.shared])
        raise
    for row in rows.made:
        messages.settle(row)
    try:
        if rows.shared_timers:
            yield from write(messages.host, "messages", rows.shared_timers)
    except InvalidWrite:
        _give_back(messages, rows.shared)
        # A message row without a timer row is never delivered, and the sender's next try would count as its repeat.
        message_rows = [Delete(keys.message(messages.shard, row.id, row.version)) for row in rows.shared]
        yield from write(messages.host, "messages", message_rows)
        raise
    for row in rows.shared:
        messages.settle(row)


def _give_back(messages: ShardMessages, rows: Sequence[QueuedMessage]) -> None:
    """Closes the rows of a failed write; the valid creates of the round write theirs again."""
    for row in rows:
        messages.queue.end_hold(row)
        messages.close(row, Stage.GONE)


def _wait_for_the_wire(messages: ShardMessages, creates: Sequence[Create]) -> Operation[None]:
    """Waits until no older version is in delivery: it must arrive before its replacement is acknowledged."""

    def on_their_way() -> bool:
        return any(
            row.stage is Stage.SENDING and row.version < create.version
            for create in creates
            for row in messages.queue.of(create.name.id)
        )

    give_up = messages.host.now + WIRE_PATIENCE_MS
    while on_their_way() and messages.host.now < give_up:
        yield from messages.host.sleep(WIRE_CHECK_MS)


def _raise_fences(messages: ShardMessages, creates: Sequence[Create]) -> Operation[None]:
    """Raises the fences of replacements, their only conditional write: from now on no owner loads an older version."""
    for create in creates:
        request_id = create.sending.request.id
        verdict = yield from raise_to(messages, create.name.id, create.version, create.fence, create.others, request_id)
        if isinstance(verdict, Refused):
            item = verdict.failed[0][1]
            if item is not None and from_item(MessageFence, item).live_from > create.version:
                create.status, create.answered, create.replaces = ReceiptStatus.SUPERSEDED, None, False
                continue
        results = {other.version: remove_from_queue(messages, other) for other in create.alive}
        # Includes versions that an earlier try of this replacement covered: held messages never end on their own.
        held = yield from messages.holding.discard([other for other in create.others if other.version < create.version])
        for other in create.alive:
            if other.version not in held:
                withdraw(messages, other, results[other.version], counted=False)


def _finish_earlier(messages: ShardMessages, creates: Sequence[Create]) -> Operation[None]:
    """Discards held messages below an earlier fence.

    The replacement that raised the fence may have crashed before it discarded them. Its replay is superseded by the create that
    is accepted now. A fence of a cancel is left out: the replay of the cancel answers by the held messages that it finds.
    """
    for create in creates:
        of_cancel = create.fence is not None and create.fence.through is not None
        if create.status is ReceiptStatus.ACCEPTED and not create.replaces and not of_cancel:
            yield from messages.holding.discard([other for other in create.others if other.version < create.live_from])


def _cover_refused(messages: ShardMessages, creates: Sequence[Create]) -> Operation[None]:
    """Fences the versions of refused replays: a former owner may still write rows of them.

    Without a key, this is not possible where the accepted record shares the version: all records of a topic have one version.
    """
    for create in creates:
        is_refused = create.sending.replay and create.status is not ReceiptStatus.ACCEPTED
        if is_refused and create.may_outlast_its_fence(messages.host.now):
            yield from fence_version(messages, create.name.id, create.version, create.fence)
            _give_up_rows(messages, create.name.id, create.version)


def refuse_repeats(messages: ShardMessages, repeats: Sequence[Create]) -> Operation[None]:
    """Refuses repeats for good: the records that they repeat are durable."""
    fences = yield from read_fences(messages.host, messages.shard, {repeat.name.id for repeat in repeats})
    for repeat in repeats:
        repeat.fence = fences.get(repeat.name.id)
    yield from _cover_refused(messages, repeats)


# -- rows -----------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Rows:
    """The writes of a round of creates.

    Attributes:
        actions: Writes that go first, together.
        made: Rows in memory that only need `actions`.
        shared_timers: Writes of timer rows that follow once `actions` are stored.
        shared: Rows in memory of these timer rows.
    """

    actions: list[Put | Delete] = field(default_factory=list)
    made: list[QueuedMessage] = field(default_factory=list)
    shared_timers: list[Put | Delete] = field(default_factory=list)
    shared: list[QueuedMessage] = field(default_factory=list)


def _make_rows(messages: ShardMessages, create: Create, rows: Rows) -> None:
    """Adds the row in memory and its writes."""
    request, position = create.sending.request, create.sending.position
    nominal = create.nominal
    slot = _slot_of(messages, create, nominal)
    # A former owner may have written a replayed create at another slot, also without its message row.
    _give_up_rows(messages, create.name.id, create.version, but_at=slot)
    expiry = row_expiry(slot)
    origin = position.text()
    timer = MessageTimer(
        slot=slot,
        id=create.name.id,
        version=create.version,
        origin=origin,
        attempt=1,
        expires_at=expiry,
        size=len(request.payload_bytes),
    )
    message = Message(
        id=create.name.id,
        version=create.version,
        origin=origin,
        namespace=request.namespace,
        nominal=nominal,
        slot=slot,
        topic=request.topic,
        payload=request.payload_bytes,
        keyed=create.name.keyed,
        headers=json.dumps(list(request.headers.items())) if request.headers else "[]",
        key_text=request.key,
        message_key=request.message_key,
        request_id=request.id,
        expires=None if request.expire_after is None else nominal + request.expire_after,
        expires_at=expiry,
    )
    shard, actions = messages.shard, rows.actions
    is_last = _is_written_behind_its_message(create)
    timers = rows.shared_timers if is_last else actions
    timers.append(Put(timer.key(shard), to_item(timer, timer.key(shard))))
    actions.append(Put(message.key(shard), to_item(message, message.key(shard))))
    if create.name.keyed:
        presence = MessageKeyRow(id=create.name.id, expires_at=presence_expiry(position.append_time))
        actions.append(Put(presence.key(shard), to_item(presence, presence.key(shard))))
    older = create.alive if create.replaces else ()
    actions.extend(Delete(keys.message_timer(shard, each.slot, each.id, each.version)) for each in older)
    (rows.shared if is_last else rows.made).append(_remember(messages, timer, message))


def _is_written_behind_its_message(create: Create) -> bool:
    """Returns whether the timer row must follow its message row, because other records share the version.

    A timer row without its message row would deliver the message of another record, however late it is written.
    """
    return not create.has_its_own_version


def _slot_of(messages: ShardMessages, create: Create, nominal: int) -> int:
    """Returns the slot of a create; a replay keeps its slot while no checkpoint covers it."""
    if create.mine is not None and not messages.is_checkpointed(create.mine.slot, create.name.id, create.version):
        return create.mine.slot
    return messages.checkpoints.slot_for(nominal)


def _is_on_its_way(messages: ShardMessages, create: Create, actions: list[Put | Delete]) -> bool:
    """Returns whether a row of this version at another slot is in delivery or delivered; then adds the removal of the stored row.

    Two owners wrote rows for a replayed create, or for two records of one request. Only one row may be delivered.
    """
    mine, rows = create.mine, [row for row in messages.queue.of(create.name.id) if row.version == create.version]
    if mine is None or not any(row.slot != mine.slot and row.stage in (Stage.SENDING, Stage.DONE) for row in rows):
        return False
    _give_up_rows(messages, create.name.id, create.version)
    actions.append(Delete(keys.message_timer(messages.shard, mine.slot, mine.id, mine.version)))
    return True


def _unmake_rows(messages: ShardMessages, mine: Message, actions: list[Put | Delete], *, is_covered: bool) -> None:
    """Removes the rows that a former owner wrote for a create that is refused now, because its repeat was accepted first.

    Such rows were not delivered: a delivery waits until the create's position or inbox row is complete. A fenced message is the
    exception. The present owner may have delivered it before its replacement, and a former owner then read the create late. No
    owner loads such a message again. Its message row stays until it expires, so an audit can explain the delivered record.
    """
    _give_up_rows(messages, mine.id, mine.version)
    actions.append(Delete(keys.message_timer(messages.shard, mine.slot, mine.id, mine.version)))
    if not is_covered:
        actions.append(Delete(keys.message(messages.shard, mine.id, mine.version)))


def _give_up_rows(messages: ShardMessages, message_id: str, version: str, but_at: int | None = None) -> None:
    """Closes the unsent rows of a version in memory, except the row at slot `but_at`."""
    for row in messages.queue.of(message_id):
        if row.version == version and row.slot != but_at and row.stage in UNSENT:
            messages.close(row, Stage.GONE)


def _remember(messages: ShardMessages, timer: MessageTimer, message: Message) -> QueuedMessage:
    """Returns the row in memory of a new timer row, and adds it to the queue if the window has read past its place.

    Until the writes are acknowledged, no checkpoint passes the place, also of a row after the window.
    """
    row = messages.queue.get(timer.id, timer.version, timer.slot)
    if row is not None and row.stage is Stage.GONE:
        messages.queue.discard(row)  # The row was closed before, and is created again.
        row = None
    if row is None:
        row = QueuedMessage(
            timer.slot, timer.id, timer.version, timer.origin, timer.attempt, Stage.WRITING, size=timer.size
        )
        if timer.slot <= messages.window.taking_through:
            messages.payloads.keep(row, message)
            messages.queue.add(row)
    messages.queue.hold(row)
    return row


# -- answers --------------------------------------------------------------------------------------------------------------


def _answer(messages: ShardMessages, creates: Sequence[Create]) -> Operation[None]:
    """Publishes receipts: of refusals and replacements always, of other accepted creates if the request wants one."""
    receipts: list[Receipt] = []
    for create in creates:
        request = create.sending.request
        wanted = request.receipt or create.replaces or create.status is not ReceiptStatus.ACCEPTED
        if wanted and request.id is not None and not create.is_answered_elsewhere:
            receipt = Receipt.model_construct(
                request_id=request.id,
                status=create.status,
                namespace=request.namespace,
                name=request.key,
                id=None if create.answered is None else public_id(messages.shard, create.name, create.answered),
                at=messages.host.now,
            )
            receipts.append(receipt)
    yield from publish_receipts(messages, receipts)


def publish_receipts(messages: ShardMessages, receipts: Sequence[Receipt]) -> Operation[None]:
    yield from publish_answers(messages, [(each.request_id, each.to_json()) for each in receipts])


def publish_answers(messages: ShardMessages, answers: Sequence[tuple[str, bytes]]) -> Operation[None]:
    """Publishes receipts in their stored form, each with its request id."""
    topic = messages.host.holding.receipts_topic
    yield from produce(messages, [Produce(topic, request_id.encode(), receipt) for request_id, receipt in answers])


def produce(messages: ShardMessages, records: Sequence[Produce]) -> Operation[None]:
    """Produces records until each is acknowledged, or refused for good."""
    left = records
    while left:
        outcomes = yield from messages.host.produce_once(left)
        left = [
            record
            for record, outcome in zip(left, outcomes, strict=True)
            if isinstance(outcome, NotProduced) and outcome.kind != "refused"
        ]
        if left:
            yield from messages.host.sleep(RETRY_MS)
