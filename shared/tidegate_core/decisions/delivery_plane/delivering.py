"""One group of due messages: produce, then say what became of each (DESIGN 5)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidegate_core.decisions.delivery_plane.slots import Slotted, Stage
from tidegate_core.decisions.operations import Operation
from tidegate_core.effects import NotProduced, Produce, Produced, Unavailable, Write
from tidegate_core.model.instants import format_instant
from tidegate_core.records.codec import to_item
from tidegate_core.records.messages import Message, MessageName, MessageTimer, public_id
from tidegate_core.store.values import Batch, Delete, Put
from tidegate_core.transactions.delivery import DIGEST_MODULUS, Tally

if TYPE_CHECKING:
    from tidegate_core.decisions.delivery_plane.plane import DeliveryPlane

ATTEMPTS_MAX = 8
"""Deliveries that the broker refuses before the message is a dead letter: about 8 min with the pauses below."""
RETRY_FIRST_MS = 2_000
RETRY_LAST_MS = 300_000
PAUSE_MS = 200
"""Pause after the guard lapsed or the broker did not answer."""
ROW_DAYS = 30
"""Timer and message rows outlive their slot by this (TTL), far beyond the requests topic's retention."""


def retry_slot(slot: int, attempt: int) -> int:
    """Returns the slot of the next attempt, the same whoever computes it, so that a repeat writes the same row."""
    return slot + min(RETRY_FIRST_MS << (attempt - 1), RETRY_LAST_MS)


def deliver(plane: DeliveryPlane, rows: Sequence[Slotted]) -> Operation[None]:
    """Delivers a group; each row ends as DONE, GONE (moved to another slot) or READY again."""
    yield from plane.load_payloads(rows)
    now = plane.host.now
    produced: list[Slotted] = []
    for row in rows:
        if row.message is None:
            continue
        if row.version < plane.guards.get(row.id, ""):
            _end(plane, row, Stage.GONE, Tally(cancelled=1))  # Replaced or cancelled while its payload was read.
        elif row.message.expires is not None and row.message.expires <= now:
            _end(plane, row, Stage.DONE, Tally(expired=1))
        else:
            produced.append(row)
    answers = yield tuple(_record(plane, row) for row in produced)
    paused = False
    for row, answer in zip(produced, answers, strict=True):
        if isinstance(answer, Produced):
            yield from _delivered(plane, row)
            continue
        assert isinstance(answer, NotProduced)
        if answer.kind == "refused":
            yield from _refused(plane, row, answer.message)
        else:
            if not paused:
                yield from plane.pause_firing(PAUSE_MS)
                paused = True
            # Without an acknowledgement it may be there all the same: a cancel is too late from now on.
            row.maybe_sent = row.maybe_sent or answer.kind == "unavailable"
            _put_back(plane, row)


def _put_back(plane: DeliveryPlane, row: Slotted) -> None:
    """Due again, unless it was replaced or cancelled while it was with the broker's client (I7)."""
    if row.version < plane.guards.get(row.id, ""):
        _end(plane, row, Stage.GONE, Tally(cancelled=1))
    else:
        plane.slots.put_back(row)


def _record(plane: DeliveryPlane, row: Slotted) -> Produce:
    message = row.message
    assert message is not None
    headers = [(name, value.encode()) for name, value in json.loads(message.headers)]
    headers += [
        ("tidegate-id", _public_id(plane, message).encode()),
        ("tidegate-nominal", format_instant(message.nominal).encode()),
        ("tidegate-attempt", str(row.attempt).encode()),
    ]
    key = None if message.message_key is None else message.message_key.encode()
    return Produce(message.topic, key, message.payload, tuple(headers), guarded=True)


def _public_id(plane: DeliveryPlane, message: Message) -> str:
    return public_id(plane.shard, MessageName(message.id, message.keyed), message.version)


def _delivered(plane: DeliveryPlane, row: Slotted) -> Operation[None]:
    assert row.message is not None
    digest = int.from_bytes(hashlib.blake2b(_public_id(plane, row.message).encode(), digest_size=8).digest(), "big")
    _end(plane, row, Stage.DONE, Tally(delivered=1, digest=digest % DIGEST_MODULUS))
    if row.maybe_sent:
        # A predecessor may have moved it to a retry slot before it fell: that one must not follow.
        yield from _forget_successor(plane, row)


def _forget_successor(plane: DeliveryPlane, row: Slotted) -> Operation[None]:
    slot = retry_slot(row.slot, row.attempt)
    successor = plane.slots.get(row.id, row.version, slot)
    if successor is not None and successor.stage in (Stage.READY, Stage.WRITTEN):
        successor.stage = Stage.GONE
    timer = _timer(row, slot, row.attempt + 1)
    yield from write(plane, "retry_undone", [Delete(timer.key(plane.shard))])


def _refused(plane: DeliveryPlane, row: Slotted, problem: str) -> Operation[None]:
    """The broker will not take it as it is: try again later, then it is a dead letter; the checkpoint waits for either."""
    plane.host.note("message_refused", shard=plane.shard, id=row.id, attempt=row.attempt, problem=problem)
    if row.attempt >= ATTEMPTS_MAX:
        yield from _bury(plane, row, problem)
        return
    slot = retry_slot(row.slot, row.attempt)
    timer = _timer(row, slot, row.attempt + 1)
    yield from write(plane, "retry", [Put(timer.key(plane.shard), to_item(timer, timer.key(plane.shard)))])
    _end(plane, row, Stage.GONE, Tally())
    if slot <= plane.loaded_through and timer.version >= plane.guards.get(timer.id, ""):
        plane.take_loaded(timer, maybe_sent=row.maybe_sent)


def _bury(plane: DeliveryPlane, row: Slotted, problem: str) -> Operation[None]:
    message = row.message
    assert message is not None
    original = _record(plane, row)
    headers = (
        *original.headers,
        ("tidegate.error.topic", message.topic.encode()),
        ("tidegate.error.class", b"undeliverable"),
        ("tidegate.error.message", problem.encode()[:1_024]),
        ("tidegate.error.at", format_instant(plane.host.now).encode()),
    )
    letter = Produce(plane.host.holding.requests_dlq_topic, original.key, original.value, headers)
    while not isinstance((answer := (yield letter)), Produced):
        if isinstance(answer, NotProduced) and answer.kind == "refused":
            # No topic takes it: said in the log, because a checkpoint that waits for it would hold up all others.
            plane.host.note("dead_letter_refused", topic=letter.topic, message=answer.message)
            break
        yield from plane.host.sleep(PAUSE_MS)
    _end(plane, row, Stage.DONE, Tally(dead=1))


def _timer(row: Slotted, slot: int, attempt: int) -> MessageTimer:
    return MessageTimer(
        slot=slot, id=row.id, version=row.version, origin=row.origin, attempt=attempt, expires_at=row_expiry(slot)
    )


def row_expiry(slot: int) -> int:
    """Returns the TTL attribute of rows of this slot: epoch seconds."""
    return slot // 1000 + ROW_DAYS * 86_400


def _end(plane: DeliveryPlane, row: Slotted, stage: Stage, tally: Tally) -> None:
    if row.message is not None:
        plane.payload_bytes -= len(row.message.payload)
        row.message = None
    row.stage = stage
    plane.fired = plane.fired.plus(tally)


def write(plane: DeliveryPlane, name: str, actions: Sequence[Put | Delete]) -> Operation[None]:
    """Writes until all of it is acknowledged."""
    while isinstance((yield Write(Batch(name, tuple(actions)))), Unavailable):
        yield from plane.host.sleep(PAUSE_MS)
