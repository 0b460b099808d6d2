"""Messages that the broker will not take as they are: tried again later, then dead letters (SEMANTICS 8, 14).

A message that is tried again moves to a slot of its own, so that it holds up no checkpoint. First its timer row says where
it goes, then the new row is written, then it leaves its place: a successor that finds the old row follows it, and one of
the two is sent, whenever a crash comes. A recurring message's fire has no row that could say so: it gets its rows by a fenced
transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate_core.decisions.delivery_plane.outgoing import dead_letter_of
from tidegate_core.decisions.delivery_plane.rows import row_expiry, write
from tidegate_core.decisions.delivery_plane.slots import Slotted, Stage
from tidegate_core.decisions.operations import Operation
from tidegate_core.effects import Items, NotProduced, Read
from tidegate_core.records.codec import from_item, to_item
from tidegate_core.records.messages import Message, MessageTimer
from tidegate_core.store.values import Put
from tidegate_core.transactions.delivery import Tally, retry_fires

if TYPE_CHECKING:
    from tidegate_core.decisions.delivery_plane.plane import DeliveryPlane

ATTEMPTS_MAX = 10
"""Deliveries that the broker refuses before the message is a dead letter: 20 min with the pauses below, however late the
message was when the first one came."""
RETRY_FIRST_MS = 5_000
RETRY_LAST_MS = 300_000
LETTER_RETRY_MS = 200
RETRIED_TOGETHER = 40
"""Refused fires in one transaction: two actions each, beside the check, and 2.7 MB at most: so much a schedule may have (`SCHEDULE_BYTES_MAX`)."""
DEAD = Tally(dead=1)


def pause_after(attempt: int) -> int:
    """Returns how long after a refused attempt the next one comes."""
    return min(RETRY_FIRST_MS << (attempt - 1), RETRY_LAST_MS)


def refused(plane: DeliveryPlane, problems: Sequence[tuple[Slotted, Message, str]]) -> Operation[None]:
    """Deals with the rows of a group that the broker refused; the checkpoint waits until each is moved or buried."""
    again: list[Slotted] = []
    fires: list[tuple[Slotted, Message]] = []
    dead: list[tuple[Slotted, Message, str]] = []
    for row, message, problem in problems:
        plane.host.note("message_refused", shard=plane.shard, id=row.id, attempt=row.attempt, problem=problem)
        if plane.has_ended(row):
            plane.withdraw(row)  # While it was with the broker's client (I7).
        elif row.attempt >= ATTEMPTS_MAX:
            row.handed = True
            dead.append((row, message, problem))
        elif row.fire is not None:
            fires.append((row, message))
        else:
            again.append(row)
    yield from _bury(plane, dead)
    yield from _move(plane, again)
    yield from make_rows(plane, fires)


def follow(plane: DeliveryPlane, moved: Sequence[MessageTimer]) -> Operation[list[MessageTimer]]:
    """Returns the rows at the new places of rows that a predecessor moved.

    The predecessor may not have come to write them, so they are written here, before anything passes the old ones.
    """
    standing: list[MessageTimer] = []
    while moved:
        onward = {row.key(plane.shard): row for row in map(_onward, moved)}
        answer = yield from plane.host.read_for_good(Read(tuple(onward)))
        assert isinstance(answer, Items)
        missing = [row for key, row in onward.items() if key not in answer.found]
        yield from _write(plane, "retry", missing)
        found = [from_item(MessageTimer, item) for item in answer.found.values()]
        standing += missing + [timer for timer in found if timer.moved_to is None]
        moved = [timer for timer in found if timer.moved_to is not None]
    return standing


def _move(plane: DeliveryPlane, rows: Sequence[Slotted]) -> Operation[None]:
    moved = [_moved(plane, row) for row in rows]
    yield from _write(plane, "moved", moved)
    onward = [_onward(timer) for timer in moved]
    yield from _write(plane, "retry", onward)
    for row, timer in zip(rows, onward, strict=True):
        move_on(plane, row, timer)


def move_on(plane: DeliveryPlane, row: Slotted, timer: MessageTimer) -> None:
    """The rows at its new place are durable: from here on that one is it."""
    if plane.has_ended(row):
        plane.withdraw(row)
    else:
        plane.close(row, Stage.GONE)
        plane.take_moved(timer, maybe_sent=row.maybe_sent)


def retry_slot(plane: DeliveryPlane, row: Slotted) -> int:
    return plane.checkpoints.slot_for(plane.host.now + pause_after(row.attempt))


def _moved(plane: DeliveryPlane, row: Slotted) -> MessageTimer:
    slot = retry_slot(plane, row)
    return MessageTimer(
        slot=row.slot,
        id=row.id,
        version=row.version,
        origin=row.origin,
        attempt=row.attempt,
        expires_at=row_expiry(max(row.slot, slot)),
        size=row.size,
        moved_to=slot,
        ref=None if row.occurrence is None else row.occurrence.ref,
        generation=0 if row.occurrence is None else row.occurrence.generation,
    )


def _onward(moved: MessageTimer) -> MessageTimer:
    assert moved.moved_to is not None
    slot = moved.moved_to
    return replace(moved, slot=slot, attempt=moved.attempt + 1, expires_at=row_expiry(slot), moved_to=None)


def make_rows(plane: DeliveryPlane, fires: Sequence[tuple[Slotted, Message]]) -> Operation[None]:
    """Gives occurrences of recurring messages, which had no rows, those of a message that is tried again. Raises InvalidWrite.

    Both rows come in one transaction that demands the epoch, and only then the fire leaves its place: a successor that computes
    it anew asks for its message row. Where there is one it leaves the fire to its timer row; where there is none, none comes any more.
    """
    for first in range(0, len(fires), RETRIED_TOGETHER):
        yield from plane.retry_turn.of(_make_rows_of(plane, fires[first : first + RETRIED_TOGETHER]))


def _make_rows_of(plane: DeliveryPlane, group: Sequence[tuple[Slotted, Message]]) -> Operation[None]:
    ended = [row for row, _ in group if plane.has_ended(row)]
    for row in ended:
        plane.withdraw(row)  # While it waited for its turn.
    left = [(row, message) for row, message in group if row not in ended]
    if not left:
        return
    rows = [_rows_of(plane, row, message) for row, message in left]
    yield from plane.commit(retry_fires(plane.shard, plane.checkpoints.durable.epoch, rows, plane.host.token()))
    for (row, _), (timer, _) in zip(left, rows, strict=True):
        move_on(plane, row, timer)


def _rows_of(plane: DeliveryPlane, row: Slotted, message: Message) -> tuple[MessageTimer, Message]:
    slot = retry_slot(plane, row)
    moved = replace(message, slot=slot, expires_at=row_expiry(slot))
    return _timer_of(row, moved), moved


def _timer_of(row: Slotted, message: Message) -> MessageTimer:
    assert row.occurrence is not None
    return MessageTimer(
        slot=message.slot,
        id=message.id,
        version=message.version,
        origin=message.origin,
        attempt=row.attempt + 1,
        expires_at=row_expiry(message.slot),
        size=row.size,
        ref=row.occurrence.ref,
        generation=row.occurrence.generation,
    )


def _write(plane: DeliveryPlane, name: str, timers: Sequence[MessageTimer]) -> Operation[None]:
    keyed = [(timer, timer.key(plane.shard)) for timer in timers]
    if keyed:
        yield from write(plane.host, name, [Put(key, to_item(timer, key)) for timer, key in keyed])


def _bury(plane: DeliveryPlane, dead: Sequence[tuple[Slotted, Message, str]]) -> Operation[None]:
    left = list(dead)
    while left:
        letters = tuple(
            dead_letter_of(plane.host, plane.shard, message, row.attempt, problem) for row, message, problem in left
        )
        answers = yield letters
        unanswered = []
        for each, letter, answer in zip(left, letters, answers, strict=True):
            if isinstance(answer, NotProduced) and answer.kind != "refused":
                unanswered.append(each)
                continue
            if isinstance(answer, NotProduced):
                # No topic takes it: said in the log, because a checkpoint that waits for it would hold up all others.
                plane.host.note("dead_letter_refused", topic=letter.topic, message=answer.message)
            plane.close(each[0], Stage.DONE, DEAD)
        left = unanswered
        if left:
            yield from plane.host.sleep(LETTER_RETRY_MS)
