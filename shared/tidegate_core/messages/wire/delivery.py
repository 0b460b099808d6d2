"""One group of due messages: produce, then say what became of each (DESIGN 5).

Order (SEMANTICS 14): the messages of a group are handed to the broker's client by (deliver_at, sequence), so those of one
message key that are due together arrive in that order. Between groups it is that of their slots, but not closely: more
messages of one instant than a group holds are cut by id, a later group may overtake an earlier one that still reads its
payloads, and what the broker refused or did not acknowledge is sent again behind others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate_core.engine.operations import Operation
from tidegate_core.messages.wire.delivery_retries import refused
from tidegate_core.messages.wire.due_queue import QueuedMessage, Stage
from tidegate_core.messages.wire.message_record import delivered_as, id_of, not_sent, record_of
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.rows.effects import Produced
from tidegate_core.rows.message import Message
from tidegate_core.writes.message_delivery import Tally

PAUSE_MS = 200
"""Pause of a group after the guard lapsed or the broker did not answer."""


def deliver(messages: ShardMessages, rows: Sequence[QueuedMessage]) -> Operation[None]:
    """Delivers a group; each row ends as DONE, GONE (withdrawn, held back, or moved to another slot) or READY again."""
    yield from messages.load_payloads(rows)
    wanted, covered = messages.holding.split_held(_in_order(messages, _without_held(messages, rows)))
    wanted, too_many = messages.checkpoints.parted(wanted)
    put_back(messages, [row for row, _ in too_many])
    for row, _ in wanted:
        row.handed = True
    messages.checkpoints.sending([row for row, _ in wanted])
    ids = [id_of(messages.shard, message) for _, message in wanted]
    outcomes = yield from messages.host.produce_once(
        [record_of(message, row.attempt, each) for (row, message), each in zip(wanted, ids, strict=True)]
    )
    problems: list[tuple[QueuedMessage, Message, str]] = []
    unanswered: list[QueuedMessage] = []
    for (row, message), delivered_id, outcome in zip(wanted, ids, outcomes, strict=True):
        if isinstance(outcome, Produced):
            messages.close(row, Stage.DONE, delivered_as(delivered_id, message.covered_count))
            continue
        row.handed = False
        if outcome.kind == "refused":
            problems.append((row, message, outcome.message))
        else:
            # Without an acknowledgement it may be there all the same: a cancel is too late from now on.
            row.maybe_sent = row.maybe_sent or outcome.kind == "unavailable"
            unanswered.append(row)
    yield from messages.holding.hold(covered)
    if problems:
        yield from refused(messages, problems)
    if unanswered:
        yield from messages.host.sleep(PAUSE_MS)
        put_back(messages, unanswered)


def _without_held(messages: ShardMessages, rows: Sequence[QueuedMessage]) -> Sequence[QueuedMessage]:
    """Puts back what was taken before a request held its schedule, or asked it back: that waits for what was handed over by then, and
    for no more.
    """
    if not messages.slots.held and not messages.slots.asked_back:
        return rows  # Each due message passes here.
    held = {row.place for row in rows if row.stage is Stage.SENDING and messages.slots.is_held(row)}
    put_back(messages, [row for row in rows if row.place in held])
    return [row for row in rows if row.place not in held]


def _in_order(messages: ShardMessages, rows: Sequence[QueuedMessage]) -> list[tuple[QueuedMessage, Message]]:
    """Ends what is not to be sent any more, and returns the others as they are to be sent."""
    wanted: list[tuple[QueuedMessage, Message]] = []
    for row in rows:
        message = row.message
        if message is None:
            continue  # There is no message row: closed already.
        if messages.has_ended(row):
            messages.withdraw(row)  # While its payload was read.
        elif messages.is_dropped(row, message):
            messages.withdraw(row)
        elif message.expires is not None and message.expires <= messages.host.now:
            messages.close(row, Stage.DONE, Tally(expired=message.covered_count))
            if row.occurrence is not None:
                first, last = message.covered_from or message.nominal, message.nominal
                not_sent(messages.host, row.occurrence.ref, "expire_after", message.covered_count, first, last)
        else:
            wanted.append((row, message))
    return sorted(wanted, key=lambda each: (each[1].nominal, each[0].origin))


def put_back(messages: ShardMessages, rows: Iterable[QueuedMessage]) -> None:
    """Due again, unless they were replaced or cancelled while they were with the broker's client (I7)."""
    for row in rows:
        if messages.has_ended(row):
            messages.withdraw(row)
        else:
            messages.payloads.drop_if_scarce(row)
            messages.slots.put_back(row)
