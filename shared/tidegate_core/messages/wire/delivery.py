"""Takes groups of due messages, produces them, and records the outcome of each message.

The scheduler starts `Firing.serve`; a hand-over calls `Firing.send_leftovers`. Nothing here writes a row: refused messages move
by `delivery_retries`, held messages by `one_shot.held_messages`.

Order: the messages of a group go to the broker's client by (deliver_at, sequence). So messages of one message key that are due
together arrive in that order. The order between groups is loose. Messages of one instant that exceed a group are split by id; a
later group may overtake a group that still reads payloads; and a message that the broker refused or did not acknowledge is sent
again later.
"""

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
"""Pause of a group after the membership lease lapsed or the broker did not answer."""


def deliver(messages: ShardMessages, rows: Sequence[QueuedMessage]) -> Operation[None]:
    """Delivers a group. Each row ends as DONE, as GONE (withdrawn, held or moved to another slot), or is READY again."""
    yield from messages.load_payloads(rows)
    wanted, covered = messages.holding.split_held(_in_order(messages, _without_held(messages, rows)))
    wanted, too_many = messages.checkpoints.split_at_bound(wanted)
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
            # The broker may have the record without having acknowledged it: from now on a cancel is too late.
            row.maybe_sent = row.maybe_sent or outcome.kind == "unavailable"
            unanswered.append(row)
    yield from messages.holding.hold(covered)
    if problems:
        yield from refused(messages, problems)
    if unanswered:
        yield from messages.host.sleep(PAUSE_MS)
        put_back(messages, unanswered)


def _without_held(messages: ShardMessages, rows: Sequence[QueuedMessage]) -> Sequence[QueuedMessage]:
    """Puts back rows that a request holds, because it began after they were taken.

    The request waits only for rows that the broker's client already had.
    """
    if not messages.queue.held and not messages.queue.being_cancelled:
        return rows  # Each due message passes here.
    held = {row.place for row in rows if row.stage is Stage.SENDING and messages.queue.is_held(row)}
    put_back(messages, [row for row in rows if row.place in held])
    return [row for row in rows if row.place not in held]


def _in_order(messages: ShardMessages, rows: Sequence[QueuedMessage]) -> list[tuple[QueuedMessage, Message]]:
    """Ends rows that must not be delivered any more, and returns the others in order of delivery."""
    wanted: list[tuple[QueuedMessage, Message]] = []
    for row in rows:
        message = row.message
        if message is None:
            continue  # The row has no message row, so loading has closed it.
        if messages.has_ended(row):
            messages.withdraw(row)  # It ended while its payload was read.
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
    """Returns rows to the queue, except rows that were replaced or cancelled meanwhile (invariant I7)."""
    for row in rows:
        if messages.has_ended(row):
            messages.withdraw(row)
        else:
            messages.payloads.drop_if_scarce(row)
            messages.queue.put_back(row)


FIRED_TOGETHER = 500
INVALID_PAUSE_MS = 60_000
"""Pause of rows that can be neither delivered nor moved. The position waits for them; each failure is reported once a minute."""
GROUPS_UNDER_WAY_MAX = 20
"""Largest number of groups in delivery: 10,000 records without acknowledgement."""


class Firing:
    """Delivers what is due, as memory, broker and checkpoint allow. One per shard; `ShardMessages.changed` wakes it."""

    def __init__(self, messages: ShardMessages) -> None:
        self._messages = messages
        self._groups = 0
        self._armed = 0
        self.closed = False

    @property
    def is_idle(self) -> bool:
        """Returns whether no group is in delivery."""
        return self._groups == 0

    def serve(self) -> Operation[None]:
        """Delivers due messages until `closed`."""
        messages = self._messages
        while not self.closed:
            through = messages.checkpoints.limit()
            # Rows that hold up the checkpoint go group by group: after each group the position may move.
            most = GROUPS_UNDER_WAY_MAX if through == EVERYWHERE else 1
            rows = self._take_due(through) if self._groups < most else []
            if rows:
                messages.host.operations.start(self._deliver(rows))
            else:
                self._wake_at_next_slot()
                yield messages.changed

    def send_leftovers(self) -> Operation[bool]:
        """Delivers the due rows that sort before the last row already sent. No checkpoint passes the sent rows while one of them is open.

        Returns whether no such row is left; False when no row of a group has ended.
        """
        while rows := self._take_due(self._messages.checkpoints.sent_through):
            yield from self._deliver(rows)
            if not any(row.stage.is_closed for row in rows):
                return False
        return True

    def _take_due(self, through: Place) -> list[QueuedMessage]:
        """Takes the next group; from here on it counts as in delivery."""
        messages = self._messages
        most = messages.checkpoints.most(FIRED_TOGETHER)
        rows = messages.queue.take_due(messages.host.now, most, through, messages.payloads.room)
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
            # The store refuses the row that moving or holding would write: the message keeps its place.
            messages.host.failed("deliver", f"shard {messages.shard}", error)
            yield from messages.host.sleep(INVALID_PAUSE_MS)
            put_back(messages, [row for row in rows if row.stage is Stage.SENDING])
        self._groups -= 1
        messages.checkpoints.ended(len(rows))
        messages.host.operations.raise_(messages.changed)

    def _wake_at_next_slot(self) -> None:
        host, changed = self._messages.host, self._messages.changed
        upcoming = self._messages.queue.next_slot()
        if upcoming is None or upcoming <= host.now:
            return
        # One alarm for the next slot: with one per call, n near messages would cost n² wakes.
        if not host.now < self._armed <= upcoming:
            self._armed = upcoming
            host.call_at(upcoming, lambda: host.operations.raise_(changed))
