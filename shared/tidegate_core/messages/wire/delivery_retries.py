"""Moves messages that the broker refused to a later attempt, and dead-letters them after the last attempt.

Delivery calls `refused`. A refused message moves to a later slot, so it holds up no checkpoint. One transaction, conditional on
the epoch, removes its timer row and writes the row of the next attempt; then the message leaves its place in memory. So after
any crash a successor finds exactly one of the two rows, and no former owner adds a row later. A fire of a recurring message has
no timer row; its move also writes its message row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidegate_core.engine.operations import Operation
from tidegate_core.messages.wire.due_queue import QueuedMessage, Stage
from tidegate_core.messages.wire.message_record import dead_letter_of, tell_dead_lettered
from tidegate_core.messages.wire.row_expiry import row_expiry
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.messages.wire.timer_window import RETRY_LAST_MS
from tidegate_core.rows import keys
from tidegate_core.rows.dead_letter import UNDELIVERABLE
from tidegate_core.rows.effects import NotProduced
from tidegate_core.rows.message import Message, MessageTimer
from tidegate_core.writes.message_delivery import Tally, retry

ATTEMPTS_MAX = 10
"""Refused deliveries after which a message becomes a dead letter: 20 min with the pauses below, counted from the first refusal."""
RETRY_FIRST_MS = 5_000
DEAD_LETTER_RETRY_MS = 200
RETRIED_TOGETHER = 40
"""Refused messages in one transaction: two actions each and one check, and at most 2.7 MB if all are fires, whose payloads
`SCHEDULE_BYTES_MAX` bounds. The store takes 100 actions and 4 MB."""


def pause_after(attempt: int) -> int:
    """Returns the pause after a refused attempt."""
    return min(RETRY_FIRST_MS << (attempt - 1), RETRY_LAST_MS)


def refused(messages: ShardMessages, problems: Sequence[tuple[QueuedMessage, Message, str]]) -> Operation[None]:
    """Moves or dead-letters the refused rows of a group; until then the checkpoint waits for them."""
    again: list[tuple[QueuedMessage, Message]] = []
    dead: list[tuple[QueuedMessage, Message, str]] = []
    for row, message, problem in problems:
        messages.host.note("message_refused", shard=messages.shard, id=row.id, attempt=row.attempt, problem=problem)
        if messages.has_ended(row):
            messages.withdraw(row)  # It ended while the broker's client had it (invariant I7).
        elif row.attempt >= ATTEMPTS_MAX:
            row.handed = True
            dead.append((row, message, problem))
        else:
            again.append((row, message))
    yield from _dead_letter(messages, dead)
    yield from _move(messages, again)


def _move(messages: ShardMessages, refused: Sequence[tuple[QueuedMessage, Message]]) -> Operation[None]:
    """Moves each message once the row of its next attempt is durable. Raises InvalidWrite; the rows that are left keep their places."""
    for first in range(0, len(refused), RETRIED_TOGETHER):
        yield from messages.retry_turn.of(_move_together(messages, refused[first : first + RETRIED_TOGETHER]))


def _move_together(messages: ShardMessages, group: Sequence[tuple[QueuedMessage, Message]]) -> Operation[None]:
    ended = [row for row, message in group if messages.has_ended(row) or messages.is_dropped(row, message)]
    for row in ended:
        # It ended while it waited for the mutex. At its new slot it would look as if it had come due after a resume.
        messages.withdraw(row)
    left = [(row, message) for row, message in group if row not in ended]
    if not left:
        return
    slots = [messages.checkpoints.slot_for(messages.host.now + pause_after(row.attempt)) for row, _ in left]
    timers = [_next_timer(row, message, slot) for (row, message), slot in zip(left, slots, strict=True)]
    # The message of a fire has no stored row.
    first_rows = [
        _first_row(message, slot) for (row, message), slot in zip(left, slots, strict=True) if row.fire is not None
    ]
    gone = [keys.message_timer(messages.shard, row.slot, row.id, row.version) for row, _ in left if row.fire is None]
    token = messages.host.token()
    yield from messages.commit(
        retry(messages.shard, messages.checkpoints.durable.epoch, gone, [*timers, *first_rows], token)
    )
    for (row, _), timer in zip(left, timers, strict=True):
        _move_on(messages, row, timer)


def _move_on(messages: ShardMessages, row: QueuedMessage, timer: MessageTimer) -> None:
    """Replaces the row by the row at the new slot, which is durable."""
    # The window may have loaded the new row before the transaction was answered: then the outcome is counted there.
    is_there = messages.queue.get(timer.id, timer.version, timer.slot) is not None
    if row.occurrence is None and messages.has_ended(row) and not is_there:
        messages.withdraw(row)
        return
    # An occurrence of a schedule that has stopped is also counted at its new slot, as a successor counts it.
    messages.close(row, Stage.GONE)
    messages.take_moved(timer)


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


def _dead_letter(messages: ShardMessages, dead: Sequence[tuple[QueuedMessage, Message, str]]) -> Operation[None]:
    left = list(dead)
    while left:
        letters = [
            dead_letter_of(messages.host, messages.shard, message, row.attempt, problem)
            for row, message, problem in left
        ]
        outcomes = yield from messages.host.produce_once(letters)
        unanswered = []
        for each, letter, outcome in zip(left, letters, outcomes, strict=True):
            if isinstance(outcome, NotProduced) and outcome.kind != "refused":
                unanswered.append(each)
                continue
            if isinstance(outcome, NotProduced):
                # The dead letter itself is refused: a log event says so, because waiting would hold up all other messages.
                messages.host.note("dead_letter_refused", topic=letter.topic, message=outcome.message)
            else:
                _, message, problem = each
                tell_dead_lettered(messages.host, message.origin, UNDELIVERABLE, problem, destination=message.topic)
            messages.close(each[0], Stage.DONE, Tally(dead=each[1].covered_count))
        left = unanswered
        if left:
            yield from messages.host.sleep(DEAD_LETTER_RETRY_MS)
