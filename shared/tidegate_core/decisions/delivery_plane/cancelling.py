"""What came through the inbox: creates that another holder read, and cancels (DESIGN 5, I7)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tidegate_core.decisions.delivery_plane.delivering import write
from tidegate_core.decisions.delivery_plane.sending import publish_receipt, send_messages, versions_of
from tidegate_core.decisions.delivery_plane.slots import Slotted, Stage
from tidegate_core.decisions.operations import Operation
from tidegate_core.effects import Items, Read
from tidegate_core.model.parsing import parse_request
from tidegate_core.model.position import Position
from tidegate_core.model.receipts import Receipt, ReceiptStatus
from tidegate_core.model.requests import MessageCancel, MessageSend
from tidegate_core.records.codec import from_item, to_item
from tidegate_core.records.messages import FOR_EVER, Guard, Message, MessageName
from tidegate_core.records.receipts import RECEIPT_DAYS, StoredReceipt, expiry
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store import keys
from tidegate_core.store.values import Delete, Put
from tidegate_core.transactions.delivery import Tally, raise_guard

if TYPE_CHECKING:
    from tidegate_core.decisions.delivery_plane.plane import DeliveryPlane

PUBLIC_ID = re.compile(r"(\d{4})-([a-z2-7]{26})", re.ASCII)
"""The id of a delivered message, as an API answer shows it: it names its shard."""


def cancel_message(plane: DeliveryPlane, row: InboxRow, done: Callable[[], Operation[None]]) -> Operation[None]:
    """Applies one inbox row of kind `M`; `done` removes the row once everything it asked for is durable."""
    request = parse_request(row.body.encode())
    if isinstance(request, MessageSend):
        from tidegate_core.decisions.delivery_plane.plane import Sending

        sending = Sending(request, Position.parse(row.origin), replay=True, inboxed=True)
        yield from send_messages(plane, [sending], lambda: None)
    else:
        assert isinstance(request, MessageCancel)
        yield from publish_receipt(plane, (yield from _answer(plane, request, row.origin)))
    yield from done()
    plane.inbox_row_gone(row.origin)


def _answer(plane: DeliveryPlane, request: MessageCancel, origin: str) -> Operation[Receipt]:
    """Returns the receipt: the stored one of a repeat, else what the cancel comes to, stored before anybody hears of it."""
    request_id = request.id or f"@{origin}"
    key = keys.receipt(plane.shard, request_id)
    found = yield from plane.host.read_for_good(Read((key,)))
    assert isinstance(found, Items)
    stored = found.found.get(key)
    if stored is not None:
        return Receipt.model_validate_json(from_item(StoredReceipt, stored).body)
    status = yield from _cancel(plane, request, origin)
    receipt = Receipt.model_construct(
        request_id=request_id,
        status=status,
        namespace=request.namespace,
        name=request.key,
        id=request.message_id,
        at=plane.host.now,
    )
    row = StoredReceipt(
        request_id=request_id, body=receipt.to_json().decode(), expires_at=expiry(plane.host.now, RECEIPT_DAYS)
    )
    yield from write(plane, "receipt", [Put(key, {**to_item(row, key), "rev": 1})])
    return receipt


def named(request: MessageCancel) -> MessageName:
    """Returns which message is meant: by key, by the request id of its send, or by the id that was printed."""
    if request.key is not None:
        return MessageName.of_key(request.namespace, request.key)
    public = PUBLIC_ID.fullmatch(request.message_id or "")
    if public is not None:
        return MessageName(public[2], False)
    return MessageName.of_request(request.namespace, request.message_id or "")


def _cancel(plane: DeliveryPlane, request: MessageCancel, origin: str) -> Operation[ReceiptStatus]:
    """First the guard, then what it covers: whoever loads a row after this reads the guard."""
    name = named(request)
    # A cancel by key ends what was sent before it; an id is never used again, so its cancel holds for ever.
    live_from = origin if name.keyed else FOR_EVER
    before = yield from _guard_of(plane, name)
    covered = [
        message
        for message in (yield from versions_of(plane, name.id))
        if message.version < live_from and (message.version >= before or before == live_from)
    ]
    guard = Guard(id=name.id, live_from=live_from)
    yield from plane.commit(raise_guard(plane.shard, plane.durable.epoch, guard, plane.host.token()))
    plane.remember_guard(name.id, live_from)
    if not covered:
        return ReceiptStatus.NOT_FOUND
    # From here on without a pause: what is not on its way now will never be.
    late = [message for message in covered if not _take_back(plane, message)]
    timers = [Delete(keys.message_timer(plane.shard, each.slot, each.id, each.version)) for each in covered]
    yield from write(plane, "cancel", timers)
    return ReceiptStatus.TOO_LATE if late else ReceiptStatus.CANCELLED


def _guard_of(plane: DeliveryPlane, name: MessageName) -> Operation[str]:
    key = keys.message_guard(plane.shard, name.id)
    answer = yield from plane.host.read_for_good(Read((key,)))
    assert isinstance(answer, Items)
    item = answer.found.get(key)
    return "" if item is None else from_item(Guard, item).live_from


def _take_back(plane: DeliveryPlane, message: Message) -> bool:
    """Takes a message out of memory; False when it was sent, is on its way, or may have been sent by a predecessor."""
    rows = [row for row in plane.slots.of(message.id) if row.version == message.version]
    if not rows:
        # Not loaded: far ahead, or passed by the checkpoint, or its guard kept it from being loaded after a predecessor,
        # who may have sent it, had raised that.
        late = message.slot <= plane.maybe_sent_through
        if late or plane.is_passed(message.slot, message.id, message.version):
            return False
        plane.fired = plane.fired.plus(Tally(cancelled=1))
        return True
    taken_back = [_take_back_row(plane, row) for row in rows]  # Each of them, also behind one that is too late.
    return all(taken_back)


def _take_back_row(plane: DeliveryPlane, row: Slotted) -> bool:
    if row.stage not in (Stage.READY, Stage.WRITTEN, Stage.WRITING):
        return row.stage is Stage.GONE and not row.maybe_sent
    row.stage = Stage.GONE
    plane.fired = plane.fired.plus(Tally(cancelled=1))
    return not row.maybe_sent
