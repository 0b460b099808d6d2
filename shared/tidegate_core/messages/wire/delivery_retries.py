"""Messages that the broker will not take as they are: tried again later, then dead letters (SEMANTICS 8, 14).

A message that is tried again moves to a slot of its own, so that it holds up no checkpoint. One transaction that demands the epoch
takes its timer row away and puts the one of the next attempt; then it leaves its place in memory. So a successor finds one of the
two, whenever a crash comes, and nothing of a former owner comes after that look. A recurring message's fire has no row to be taken
away; it gets its message row as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate_core.engine.operations import Operation
from tidegate_core.messages.wire.due_queue import QueuedMessage, Stage
from tidegate_core.messages.wire.message_record import dead_letter_of, tell_dead_lettered
from tidegate_core.messages.wire.row_expiry import row_expiry
from tidegate_core.rows import keys
from tidegate_core.rows.dead_letter import UNDELIVERABLE
from tidegate_core.rows.effects import NotProduced
from tidegate_core.rows.message import Message, MessageTimer
from tidegate_core.writes.message_delivery import Tally, retry

if TYPE_CHECKING:
    from tidegate_core.messages.message_scheduler import MessageScheduler

ATTEMPTS_MAX = 10
"""Deliveries that the broker refuses before the message is a dead letter: 20 min with the pauses below, however late the
message was when the first one came."""
RETRY_FIRST_MS = 5_000
RETRY_LAST_MS = 300_000
DEAD_LETTER_RETRY_MS = 200
RETRIED_TOGETHER = 40
"""Refused messages in one transaction: two actions each, beside the check, and 2.7 MB at most if all are fires: so much a schedule
may have (`SCHEDULE_BYTES_MAX`). The store takes 100 actions and 4 MB."""


def pause_after(attempt: int) -> int:
    """Returns how long after a refused attempt the next one comes."""
    return min(RETRY_FIRST_MS << (attempt - 1), RETRY_LAST_MS)


def refused(plane: MessageScheduler, problems: Sequence[tuple[QueuedMessage, Message, str]]) -> Operation[None]:
    """Deals with the rows of a group that the broker refused; the checkpoint waits until each is moved or buried."""
    again: list[tuple[QueuedMessage, Message]] = []
    dead: list[tuple[QueuedMessage, Message, str]] = []
    for row, message, problem in problems:
        plane.host.note("message_refused", shard=plane.shard, id=row.id, attempt=row.attempt, problem=problem)
        if plane.has_ended(row):
            plane.withdraw(row)  # While it was with the broker's client (I7).
        elif row.attempt >= ATTEMPTS_MAX:
            row.handed = True
            dead.append((row, message, problem))
        else:
            again.append((row, message))
    yield from _bury(plane, dead)
    yield from _move(plane, again)


def _move(plane: MessageScheduler, refused: Sequence[tuple[QueuedMessage, Message]]) -> Operation[None]:
    """Has each leave its place once the row of its next attempt is durable. Raises InvalidWrite: then those that did not keep theirs."""
    for first in range(0, len(refused), RETRIED_TOGETHER):
        yield from plane.retry_turn.of(_move_together(plane, refused[first : first + RETRIED_TOGETHER]))


def _move_together(plane: MessageScheduler, group: Sequence[tuple[QueuedMessage, Message]]) -> Operation[None]:
    ended = [row for row, message in group if plane.has_ended(row) or plane.is_dropped(row, message)]
    for row in ended:
        # While it waited for its turn; at its new place it would look as if it had been due after a resume.
        plane.withdraw(row)
    left = [(row, message) for row, message in group if row not in ended]
    if not left:
        return
    slots = [plane.checkpoints.slot_for(plane.host.now + pause_after(row.attempt)) for row, _ in left]
    timers = [_next_timer(row, message, slot) for (row, message), slot in zip(left, slots, strict=True)]
    # A fire's message has no row yet.
    messages = [
        _first_row(message, slot) for (row, message), slot in zip(left, slots, strict=True) if row.fire is not None
    ]
    gone = [keys.message_timer(plane.shard, row.slot, row.id, row.version) for row, _ in left if row.fire is None]
    token = plane.host.token()
    yield from plane.commit(retry(plane.shard, plane.checkpoints.durable.epoch, gone, [*timers, *messages], token))
    for (row, _), timer in zip(left, timers, strict=True):
        _move_on(plane, row, timer)


def _move_on(plane: MessageScheduler, row: QueuedMessage, timer: MessageTimer) -> None:
    """The row at its new place is durable: from here on that one is it."""
    # Where the store was asked for its new place before it answered, it is there by now: then what became of it is counted there.
    is_there = plane.slots.get(timer.id, timer.version, timer.slot) is not None
    if row.occurrence is None and plane.has_ended(row) and not is_there:
        plane.withdraw(row)
        return
    # Also an occurrence whose schedule was stopped meanwhile: it is counted at its new place, as a successor counts it.
    plane.close(row, Stage.GONE)
    plane.take_moved(timer)


def _next_timer(row: QueuedMessage, message: Message, slot: int) -> MessageTimer:
    return MessageTimer(
        slot=slot,
        id=message.id,
        version=message.version,
        origin=row.origin,
        attempt=row.attempt + 1,
        expires_at=row_expiry(slot),
        size=row.size,
        ref=None if row.occurrence is None else row.occurrence.ref,
        generation=0 if row.occurrence is None else row.occurrence.generation,
        covered=message.covered_count if message.covered_count > 1 else None,
        maybe_sent=row.maybe_sent or None,
    )


def _first_row(message: Message, slot: int) -> Message:
    return replace(message, slot=slot, expires_at=row_expiry(slot))


def _bury(plane: MessageScheduler, dead: Sequence[tuple[QueuedMessage, Message, str]]) -> Operation[None]:
    left = list(dead)
    while left:
        letters = [
            dead_letter_of(plane.host, plane.shard, message, row.attempt, problem) for row, message, problem in left
        ]
        outcomes = yield from plane.host.produce_once(letters)
        unanswered = []
        for each, letter, outcome in zip(left, letters, outcomes, strict=True):
            if isinstance(outcome, NotProduced) and outcome.kind != "refused":
                unanswered.append(each)
                continue
            if isinstance(outcome, NotProduced):
                # No topic takes it: said in the log, because a checkpoint that waits for it would hold up all others.
                plane.host.note("dead_letter_refused", topic=letter.topic, message=outcome.message)
            else:
                _, message, problem = each
                tell_dead_lettered(plane.host, message.origin, UNDELIVERABLE, problem, destination=message.topic)
            plane.close(each[0], Stage.DONE, Tally(dead=each[1].covered_count))
        left = unanswered
        if left:
            yield from plane.host.sleep(DEAD_LETTER_RETRY_MS)
