"""Creates of messages: look up what has to be looked up, raise guards of replacements, write rows, answer (DESIGN 5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate_core.decisions.delivery_plane.delivering import row_expiry, write
from tidegate_core.decisions.delivery_plane.slots import Slotted, Stage
from tidegate_core.decisions.operations import Operation
from tidegate_core.effects import Items, NotProduced, Produce, Produced, Read, ReadRange, Refused
from tidegate_core.model.receipts import Receipt, ReceiptStatus
from tidegate_core.records.codec import from_item, to_item
from tidegate_core.records.messages import (
    FIRST_VERSION,
    Guard,
    Message,
    MessageName,
    MessageTimer,
    Presence,
    public_id,
)
from tidegate_core.store import keys
from tidegate_core.store.values import Delete, Item, Key, Page, Put, RangeRead
from tidegate_core.transactions.delivery import Tally, raise_guard

if TYPE_CHECKING:
    from tidegate_core.decisions.delivery_plane.plane import DeliveryPlane, Sending

PRESENCE_DAYS = 30
"""A presence row outlives its message's time by this, as long as its message row."""
VERSIONS_MAX = 200
"""Versions of one key that are looked at; older ones are far in the past."""
RETRY_MS = 200
WIRE_PATIENCE_MS = 3_000
"""The guarded producer gives a record up within half a session (3 s)."""
WIRE_LOOK_MS = 10


@dataclass(slots=True)
class _Create:
    """One create with what the look-up said about it."""

    sending: Sending
    name: MessageName
    version: str
    live_from: str = ""
    present: bool = False
    others: list[Message] = field(default_factory=list)
    mine: Message | None = None
    status: ReceiptStatus = ReceiptStatus.ACCEPTED
    replaces: bool = False


def send_messages(plane: DeliveryPlane, messages: Sequence[Sending], done: Callable[[], None]) -> Operation[None]:
    """Makes creates durable, then calls back. Two creates of one key are never in the same round."""
    for group in _rounds(messages):
        yield from _send_round(plane, group)
    done()


def name_of(sending: Sending) -> tuple[MessageName, str]:
    """Returns name and version: keyed creates are versioned by their position, others have one version only."""
    request = sending.request
    if request.key is not None:
        return MessageName.of_key(request.namespace, request.key), sending.position.text()
    return MessageName.of_request(request.namespace, request.id or sending.position.text()), FIRST_VERSION


def _rounds(messages: Sequence[Sending]) -> list[list[_Create]]:
    rounds: list[list[_Create]] = []
    last_round: dict[str, int] = {}
    for sending in messages:
        name, version = name_of(sending)
        number = last_round.get(name.id, -1) + 1
        last_round[name.id] = number
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(_Create(sending, name, version))
    return rounds


def _send_round(plane: DeliveryPlane, creates: list[_Create]) -> Operation[None]:
    yield from _look_up(plane, creates)
    for create in creates:
        _judge(plane, create)
    yield from _raise_guards(plane, [create for create in creates if create.replaces])
    actions: list[Put | Delete] = []
    accepted = [create for create in creates if create.status is ReceiptStatus.ACCEPTED]
    rows = [_make_rows(plane, create, actions) for create in accepted]
    for create in creates:
        refused = create.status is not ReceiptStatus.ACCEPTED
        if refused and create.mine is not None and create.mine.origin == create.sending.position.text():
            _unmake_rows(plane, create.mine, actions)
    if actions:
        yield from write(plane, "messages", actions)
    for row in rows:
        plane.settle(row)
    yield from _wait_for_the_wire(plane, [create for create in creates if create.replaces])
    yield from _answer(plane, creates)


def _wait_for_the_wire(plane: DeliveryPlane, creates: Sequence[_Create]) -> Operation[None]:
    """An older version that is with the broker's client arrives before its replacement is acknowledged, not after."""

    def on_their_way() -> bool:
        return any(
            row.stage is Stage.SENDING and row.version < create.version
            for create in creates
            for row in plane.slots.of(create.name.id)
        )

    give_up = plane.host.now + WIRE_PATIENCE_MS
    while on_their_way() and plane.host.now < give_up:
        yield from plane.host.sleep(WIRE_LOOK_MS)


# -- look-up --------------------------------------------------------------------------------------------------------------


def _look_up(plane: DeliveryPlane, creates: Sequence[_Create]) -> Operation[None]:
    """A create without any id needs no look-up, unless a predecessor may have written it (replay)."""
    wanted: dict[Key, _Create] = {}
    for create in creates:
        if create.name.keyed:
            wanted[keys.message_presence(plane.shard, create.name.id)] = create
        if create.name.keyed or create.sending.request.id is not None:
            wanted[keys.message_guard(plane.shard, create.name.id)] = create
        if create.sending.replay or (not create.name.keyed and create.sending.request.id is not None):
            wanted[keys.message(plane.shard, create.name.id, create.version)] = create
    if not wanted:
        return
    answer = yield from plane.host.read_for_good(Read(tuple(wanted)))
    assert isinstance(answer, Items)
    for key, create in wanted.items():
        item = answer.found.get(key)
        if item is None:
            continue
        if key.sk.startswith("G#"):
            create.live_from = from_item(Guard, item).live_from
        elif key.sk.startswith("K#"):
            create.present = True
        else:
            create.mine = from_item(Message, item)
    for create in creates:
        if create.present:
            create.others = [
                each for each in (yield from versions_of(plane, create.name.id)) if each.version != create.version
            ]


def versions_of(plane: DeliveryPlane, message_id: str) -> Operation[list[Message]]:
    """Returns the newest versions of a message, newest first."""
    low, high = f"M#{message_id}#", f"M#{message_id}#{keys.LAST}"
    found: list[Message] = []
    after: str | None = None
    while True:
        # Page by page: four payloads of the largest size fill one.
        wanted = RangeRead(keys.shard_pk(plane.shard), low, high, VERSIONS_MAX, after, newest_first=True)
        page = yield from plane.host.read_for_good(ReadRange(wanted))
        assert isinstance(page, Page)
        found.extend(from_item(Message, item) for item in page.items)
        after = page.next_after
        if after is None or len(found) >= VERSIONS_MAX:
            return found


def _judge(plane: DeliveryPlane, create: _Create) -> None:
    """Decides what the create is: new, a repeat, too old, or a replacement."""
    request_id = create.sending.request.id
    origin = create.sending.position.text()
    if create.mine is not None and create.mine.origin != origin:
        create.status = ReceiptStatus.UNCHANGED  # The same request id from another record.
    elif request_id is not None and any(other.request_id == request_id for other in create.others):
        create.status = ReceiptStatus.UNCHANGED
    elif create.version < create.live_from:
        create.status = ReceiptStatus.SUPERSEDED if create.name.keyed else ReceiptStatus.CANCELLED
    elif any(other.version > create.version for other in create.others):
        create.status = ReceiptStatus.SUPERSEDED
    else:
        # A guard of this very version is a replay's: it was a replacement the first time too.
        own_guard = create.name.keyed and create.live_from == create.version
        create.replaces = own_guard or any(other.version >= create.live_from for other in create.others)


def _raise_guards(plane: DeliveryPlane, creates: Sequence[_Create]) -> Operation[None]:
    """The only conditional write of a replacement: from now on older versions are not loaded, by whomever."""
    for create in creates:
        guard = Guard(id=create.name.id, live_from=create.version)
        verdict = yield from plane.commit(raise_guard(plane.shard, plane.durable.epoch, guard, plane.host.token()))
        if isinstance(verdict, Refused):
            item = verdict.failed[0][1]
            if item is not None and from_item(Guard, item).live_from > create.version:
                create.status = ReceiptStatus.SUPERSEDED
                continue
        plane.remember_guard(guard.id, guard.live_from)
        for row in plane.slots.of(guard.id):
            if row.version < guard.live_from and row.stage in (Stage.READY, Stage.WRITTEN):
                row.stage = Stage.GONE
                plane.fired = plane.fired.plus(Tally(cancelled=1))


# -- rows -----------------------------------------------------------------------------------------------------------------


def _make_rows(plane: DeliveryPlane, create: _Create, actions: list[Put | Delete]) -> Slotted:
    """Returns the row in memory and adds its writes; a replayed create keeps its slot while no checkpoint covers it."""
    request, position = create.sending.request, create.sending.position
    nominal = request.due(position.append_time)
    slot = plane.slot_for(nominal)
    if create.mine is not None:
        before = create.mine.slot
        slot = before if not plane.is_passed(before, create.name.id, create.version) else slot
        _forget_other_slots(plane, create, slot)
    expiry = row_expiry(slot)
    origin = position.text()
    timer = MessageTimer(
        slot=slot, id=create.name.id, version=create.version, origin=origin, attempt=1, expires_at=expiry
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
        headers=json.dumps(list(request.headers.items())),
        key_text=request.key,
        message_key=request.message_key,
        request_id=request.id,
        expires=None if request.expire_after is None else nominal + request.expire_after,
        expires_at=expiry,
    )
    actions.append(_put(timer.key(plane.shard), to_item(timer, timer.key(plane.shard))))
    actions.append(_put(message.key(plane.shard), to_item(message, message.key(plane.shard))))
    if create.name.keyed:
        presence = Presence(id=create.name.id, expires_at=expiry + (PRESENCE_DAYS - 30) * 86_400)
        actions.append(_put(presence.key(plane.shard), to_item(presence, presence.key(plane.shard))))
    older = create.others if create.replaces else ()
    actions.extend(Delete(keys.message_timer(plane.shard, each.slot, each.id, each.version)) for each in older)
    return _remember(plane, timer, message)


def _unmake_rows(plane: DeliveryPlane, mine: Message, actions: list[Put | Delete]) -> None:
    """Removes what a former owner wrote for a create that is refused now, because a repeat of it was accepted meanwhile.

    Such rows have not been sent: whoever sends waits until the create's position, or its inbox row, says that it is done.
    """
    for row in plane.slots.of(mine.id):
        if row.version == mine.version and row.stage in (Stage.READY, Stage.WRITTEN):
            row.stage = Stage.GONE
    actions.append(Delete(keys.message_timer(plane.shard, mine.slot, mine.id, mine.version)))
    actions.append(Delete(keys.message(plane.shard, mine.id, mine.version)))


def _put(key: Key, item: Item) -> Put:
    return Put(key, item)


def _remember(plane: DeliveryPlane, timer: MessageTimer, message: Message) -> Slotted:
    """The owner's own rows go straight to memory when they lie in what is loaded; they hold up the checkpoint until acknowledged."""
    known = plane.slots.get(timer.id, timer.version, timer.slot)
    if known is not None:
        return known
    row = Slotted(timer.slot, timer.id, timer.version, timer.origin, timer.attempt, Stage.WRITING)
    if timer.slot <= plane.loaded_through:
        if plane.keeps_payload(timer.slot, len(message.payload)):
            row.message = message
            plane.payload_bytes += len(message.payload)
        plane.slots.add(row)
    return row


def _forget_other_slots(plane: DeliveryPlane, create: _Create, slot: int) -> None:
    for row in plane.slots.of(create.name.id):
        if row.version == create.version and row.slot != slot and row.stage in (Stage.READY, Stage.WRITTEN):
            row.stage = Stage.GONE


# -- answers --------------------------------------------------------------------------------------------------------------


def _answer(plane: DeliveryPlane, creates: Sequence[_Create]) -> Operation[None]:
    """Receipts: refusals and replacements always, plain acceptance when it was asked for (SEMANTICS 18)."""
    for create in creates:
        request = create.sending.request
        wanted = request.receipt or create.replaces or create.status is not ReceiptStatus.ACCEPTED
        if wanted and request.id is not None:
            receipt = Receipt.model_construct(
                request_id=request.id,
                status=create.status,
                namespace=request.namespace,
                name=request.key,
                id=public_id(plane.shard, create.name, create.version),
                at=plane.host.now,
            )
            yield from publish_receipt(plane, receipt)


def publish_receipt(plane: DeliveryPlane, receipt: Receipt) -> Operation[None]:
    topic = plane.host.holding.receipts_topic
    while True:
        answer = yield Produce(topic, receipt.request_id.encode(), receipt.to_json())
        if isinstance(answer, Produced) or (isinstance(answer, NotProduced) and answer.kind == "refused"):
            return
        yield from plane.host.sleep(RETRY_MS)
