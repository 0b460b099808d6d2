"""Messages that the broker will not take as they are: tried again later, then dead letters (SEMANTICS 8, 14).

A message that is tried again moves to a slot of its own, so that it holds up no checkpoint. One transaction that demands the epoch
takes its timer row away and puts the one of the next attempt; then it leaves its place in memory. So a successor finds one of the
two, whenever a crash comes, and nothing of a former owner comes after that look. A recurring message's fire has no row to be taken
away; it gets its message row as well.
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
"""Deliveries that the broker refuses before the message is a dead letter: 20 min with the pauses below, however late the
message was when the first one came."""
RETRY_FIRST_MS = 5_000
DEAD_LETTER_RETRY_MS = 200
RETRIED_TOGETHER = 40
"""Refused messages in one transaction: two actions each, beside the check, and 2.7 MB at most if all are fires: so much a schedule
may have (`SCHEDULE_BYTES_MAX`). The store takes 100 actions and 4 MB."""


def pause_after(attempt: int) -> int:
    """Returns how long after a refused attempt the next one comes."""
    return min(RETRY_FIRST_MS << (attempt - 1), RETRY_LAST_MS)


def refused(messages: ShardMessages, problems: Sequence[tuple[QueuedMessage, Message, str]]) -> Operation[None]:
    """Deals with the rows of a group that the broker refused; the checkpoint waits until each is moved or buried."""
    again: list[tuple[QueuedMessage, Message]] = []
    dead: list[tuple[QueuedMessage, Message, str]] = []
    for row, message, problem in problems:
        messages.host.note("message_refused", shard=messages.shard, id=row.id, attempt=row.attempt, problem=problem)
        if messages.has_ended(row):
            messages.withdraw(row)  # While it was with the broker's client (I7).
        elif row.attempt >= ATTEMPTS_MAX:
            row.handed = True
            dead.append((row, message, problem))
        else:
            again.append((row, message))
    yield from _bury(messages, dead)
    yield from _move(messages, again)


def _move(messages: ShardMessages, refused: Sequence[tuple[QueuedMessage, Message]]) -> Operation[None]:
    """Has each leave its place once the row of its next attempt is durable. Raises InvalidWrite: then those that did not keep theirs."""
    for first in range(0, len(refused), RETRIED_TOGETHER):
        yield from messages.retry_turn.of(_move_together(messages, refused[first : first + RETRIED_TOGETHER]))


def _move_together(messages: ShardMessages, group: Sequence[tuple[QueuedMessage, Message]]) -> Operation[None]:
    ended = [row for row, message in group if messages.has_ended(row) or messages.is_dropped(row, message)]
    for row in ended:
        # While it waited for its turn; at its new place it would look as if it had been due after a resume.
        messages.withdraw(row)
    left = [(row, message) for row, message in group if row not in ended]
    if not left:
        return
    slots = [messages.checkpoints.slot_for(messages.host.now + pause_after(row.attempt)) for row, _ in left]
    timers = [_next_timer(row, message, slot) for (row, message), slot in zip(left, slots, strict=True)]
    # A fire's message has no row yet.
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
    """The row at its new place is durable: from here on that one is it."""
    # Where the store was asked for its new place before it answered, it is there by now: then what became of it is counted there.
    is_there = messages.slots.get(timer.id, timer.version, timer.slot) is not None
    if row.occurrence is None and messages.has_ended(row) and not is_there:
        messages.withdraw(row)
        return
    # Also an occurrence whose schedule was stopped meanwhile: it is counted at its new place, as a successor counts it.
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


def _bury(messages: ShardMessages, dead: Sequence[tuple[QueuedMessage, Message, str]]) -> Operation[None]:
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
                # No topic takes it: said in the log, because a checkpoint that waits for it would hold up all others.
                messages.host.note("dead_letter_refused", topic=letter.topic, message=outcome.message)
            else:
                _, message, problem = each
                tell_dead_lettered(messages.host, message.origin, UNDELIVERABLE, problem, destination=message.topic)
            messages.close(each[0], Stage.DONE, Tally(dead=each[1].covered_count))
        left = unanswered
        if left:
            yield from messages.host.sleep(DEAD_LETTER_RETRY_MS)
