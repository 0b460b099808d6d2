"""DELIVERY"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate_core.engine.actor_context import InvalidEffect
from tidegate_core.engine.operations import Operation
from tidegate_core.messages.wire.delivery_retries import refused
from tidegate_core.messages.wire.due_queue import EVERYWHERE, Place, QueuedMessage, Stage
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


FIRED_TOGETHER = 500
INVALID_PAUSE_MS = 60_000
"""Of rows that can neither be sent nor moved; the position waits for them, and each of them is told once a minute."""
GROUPS_UNDER_WAY_MAX = 20
"""Groups handed to the broker's client and not acknowledged: 10,000 records."""


class Firing:
    """One per shard; `messages.changed` wakes it."""

    def __init__(self, messages: ShardMessages) -> None:
        self._messages = messages
        self._groups = 0
        self._armed = 0
        self.closed = False

    @property
    def is_idle(self) -> bool:
        """Nothing is under way."""
        return self._groups == 0

    def serve(self) -> Operation[None]:
        """Sends what is due, for good."""
        messages = self._messages
        while not self.closed:
            through = messages.checkpoints.limit()
            # What stands in the checkpoint's way goes group by group: after each of them the position may move.
            most = GROUPS_UNDER_WAY_MAX if through == EVERYWHERE else 1
            rows = self._take_due(through) if self._groups < most else []
            if rows:
                messages.host.operations.start(self._deliver(rows))
            else:
                self._wake_at_next_slot()
                yield messages.changed

    def send_leftovers(self) -> Operation[bool]:
        """Sends what became ready, or was given back, before places that were sent: no checkpoint would pass those.

        Returns whether nothing of it is left; False when none of it came to its end any more.
        """
        while rows := self._take_due(self._messages.checkpoints.sent_through):
            yield from self._deliver(rows)
            if not any(row.stage.is_closed for row in rows):
                return False
        return True

    def _take_due(self, through: Place) -> list[QueuedMessage]:
        """Returns a group that is to be delivered; it counts as under way from here on."""
        messages = self._messages
        most = messages.checkpoints.most(FIRED_TOGETHER)
        rows = messages.slots.take_due(messages.host.now, most, through, messages.payloads.room)
        self._groups += bool(rows)
        for row in rows:
            messages.payloads.hold(row)
        if rows:
            messages.checkpoints.taken()
        messages.recurring.taken(rows)
        return rows

    def _deliver(self, rows: list[QueuedMessage]) -> Operation[None]:
        messages = self._messages
        try:
            yield from deliver(messages, rows)
        except InvalidEffect as error:
            # Moved to its next slot, or held back, a row would be one that the store does not take: it keeps its place.
            messages.host.failed("deliver", f"shard {messages.shard}", error)
            yield from messages.host.sleep(INVALID_PAUSE_MS)
            put_back(messages, [row for row in rows if row.stage is Stage.SENDING])
        self._groups -= 1
        messages.checkpoints.ended(len(rows))
        messages.host.operations.raise_(messages.changed)

    def _wake_at_next_slot(self) -> None:
        host, changed = self._messages.host, self._messages.changed
        upcoming = self._messages.slots.next_slot()
        if upcoming is None or upcoming <= host.now:
            return
        # One alarm for what is next: with one for each time that this is asked, n near messages would cost n² wakes.
        if not host.now < self._armed <= upcoming:
            self._armed = upcoming
            host.call_at(upcoming, lambda: host.operations.raise_(changed))
