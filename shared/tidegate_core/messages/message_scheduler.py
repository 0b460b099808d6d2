"""A shard's delivery plane: takes creates and cancels, and sends what is due (DESIGN 5).

Its parts keep their own state: the rows in memory (`slots`), what of the store is among them (`window`), their payloads'
budget (`payloads`), what is being sent (`Firing`), the delivery position (`checkpoints`), what must not be sent any more
(`guards`), and the schedules whose fires have no rows (`recurring`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from types import MappingProxyType

from tidegate_core.engine.actor_context import ActorContext, Fenced, InvalidWrite
from tidegate_core.engine.operations import Mutex, Operation, Signal
from tidegate_core.messages.one_shot.create_lookup import PendingCreate, Unkept
from tidegate_core.messages.one_shot.create_writer import send_messages
from tidegate_core.messages.one_shot.former_owner_rows import FormerOwnerRows
from tidegate_core.messages.one_shot.held_messages import HeldMessages
from tidegate_core.messages.one_shot.inbox_messages import InboxMessages
from tidegate_core.messages.one_shot.message_fence import CANCELLED, MessageFences, read_guards
from tidegate_core.messages.one_shot.uncommitted_creates import Waiting
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.messages.recurring.retry_rows import sort_out
from tidegate_core.messages.wire.checkpoints import Checkpoints
from tidegate_core.messages.wire.delivery_loop import Firing
from tidegate_core.messages.wire.due_queue import NOTHING, DueQueue, Occurrence, QueuedMessage, Stage
from tidegate_core.messages.wire.far_retries import NextAttempts
from tidegate_core.messages.wire.payload_budget import PAYLOADS_AHEAD_MS, PAYLOADS_AHEAD_ROWS_MAX, Payloads
from tidegate_core.messages.wire.timer_window import ROWS_MAX, Window, renew
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Committed, Refused
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import Message, MessageTimer, version_without_key
from tidegate_core.rows.store_operations import Item, Transaction
from tidegate_core.shard.map_transition import Positions
from tidegate_core.writes.message_delivery import Progress, Tally

CLOCKS_APART_MS = 1_000
"""Two nodes' clocks deviate by 500 ms each at most (DESIGN 3): the predecessor may have sent what is not due here yet."""


class MessageScheduler:
    """One per owned shard, from its fence on.

    Args:
        host: Shared parts of the partition actor.
        shard: 0 to S-1.
        progress: The delivery position as read at the fence, with the new epoch.
        position: Durable position of the own requests topic partition at the fence.
        former: Positions of the map before; none for the first map.
    """

    def __init__(
        self,
        host: ActorContext,
        shard: int,
        progress: Progress,
        position: int,
        former: Positions = MappingProxyType({}),
    ) -> None:
        self.host = host
        self.shard = shard
        self.changed = Signal(f"slots {shard}")
        self.slots = DueQueue()
        self.window = Window(host, shard, self.slots, progress, self._load_page)
        self.payloads = Payloads(host, shard)
        self.checkpoints = Checkpoints(
            host, shard, progress, self.slots, lambda: self.window.loaded_through, self.changed
        )
        self.guards = MessageFences()
        self.holding = HeldMessages(self)
        self.recurring = RecurringQueue(self)
        self._first_topic, *_ = topics = host.holding.requests_topics
        self.versions_without_key = {each: version_without_key(each, self._first_topic) for each in topics}
        self.maybe_sent_through = host.now + CLOCKS_APART_MS
        self.elsewhere = FormerOwnerRows(host, former)
        self.retry_turn = Mutex(host.operations, f"refused messages {shard}")
        self.next_attempts = NextAttempts(self)
        self._waiting = Waiting(host, position)
        self.inboxed = InboxMessages(self, self._waiting, lambda: self._queue(self.inboxed.apply))
        self._work: deque[Callable[[], Operation[None]]] = deque()
        self._work_signal = Signal(f"messages {shard}")
        self._writing = False
        self._firing = Firing(self)
        self._draining = False

    # -- life ---------------------------------------------------------------------------------------------------------

    def recover(self) -> Operation[None]:
        """Loads the window behind the delivery position, then serves.

        What still lies in the inbox is taken before (`inboxed`): its rows may be there and must wait for it.
        """
        yield from self.recurring.recover()
        yield from self.window.extend()
        serving = (
            self._firing.serve(),
            self.window.keep_extended(),
            self._write_in_turn(),
            self._load_payloads_ahead(),
            self.recurring.keep_placed(),
            self.holding.keep_endless(),
        )
        for operation in serving:
            self.host.operations.start(operation)

    def stop_sending(self) -> None:
        """From here on nothing goes out but what stands before places that were sent: what else is due is the successor's."""
        self._firing.closed = self.checkpoints.closed = True

    def drain(self) -> Operation[None]:
        """Stops firing, waits for what is under way, writes the checkpoint: an orderly hand-over repeats nothing. All that lies before what was
        sent is loaded by now (`waits_for_the_log`).

        What the broker does not acknowledge is sent until it does, while something behind it was delivered; whoever waits for
        the hand-over may cut it.
        """
        self._draining = True
        self.stop_sending()
        yield from self.host.wait_while(lambda: not self._is_still())
        self.window.closed = True
        yield from self.recurring.summoned.bring_near()
        while not (yield from self._firing.send_leftovers()) or self._holds_fires_up():
            # What lies before those that are left, for after a cut. Only the last one may stay where it is.
            yield from self.checkpoints.write()
            if not self.slots.has_delivered:
                break
            yield from self.host.wait_while(self._holds_fires_up)
        yield from self.checkpoints.write(last=True)

    def _holds_fires_up(self) -> bool:
        """Whether fires before what was sent may go out, or have ended, only behind something that is under way: a request in the lane,
        which may hold a schedule by now, or the fact of an outage.
        """
        return self.slots.holds_position or self.slots.late_fires_wait

    def _is_still(self) -> bool:
        under_way = self._writing or self.checkpoints.is_writing or self._holds_fires_up() or self._is_held_up()
        return self._firing.is_idle and not under_way

    def _is_held_up(self) -> bool:
        """Whether what is left to be done keeps the position from passing what was sent: rows wait for it that lie before that."""
        return bool(self._work) and any(self._waiting.before(self.checkpoints.sent_through))

    @property
    def waits_for_the_log(self) -> bool:
        """Whether the position cannot pass what was sent before creates are read again that a predecessor wrote rows of; such rows may also
        be among those that are loaded yet.
        """
        waiting = self._waiting.before(self.checkpoints.sent_through)
        return self._is_sent_ahead() or any(row.from_store and isinstance(row.waits_for, int) for row in waiting)

    def _is_sent_ahead(self) -> bool:
        """Whether the position cannot pass all that was sent before the window is extended: that is being done."""
        return self.window.loaded_through < self.checkpoints.sent_through

    # -- work from outside --------------------------------------------------------------------------------------------

    def send(self, messages: Sequence[PendingCreate], done: Callable[[Sequence[Unkept]], None]) -> None:
        """Writes creates; calls back when they and their receipts are durable, and their position may pass, with those of
        them that are dead letters instead.
        """
        self._queue(lambda: self._send(messages, done))

    def _send(self, messages: Sequence[PendingCreate], done: Callable[[Sequence[Unkept]], None]) -> Operation[None]:
        done((yield from send_messages(self, messages)))

    def position_is(self, next_offset: int) -> None:
        """The own position is durable up to here: creates below it may fire."""
        self._waiting.position_is(next_offset)
        self.inboxed.position_moved()
        self.host.operations.raise_(self.changed)

    def _queue(self, work: Callable[[], Operation[None]]) -> None:
        self._work.append(work)
        self.host.operations.raise_(self._work_signal)

    def _write_in_turn(self) -> Operation[None]:
        """One send or cancel at a time, in order of arrival: two of one message never overlap. Amid a hand-over only while they hold it up."""
        while True:
            if not self._work or (self._draining and not self._is_held_up()):
                yield self._work_signal
                continue
            self._writing = True
            try:
                yield from self._work.popleft()()
            except InvalidWrite as error:
                # What is applied and cannot leave the inbox: its messages wait, for the next owner at the latest.
                self.host.failed("inboxed", f"shard {self.shard}", error)
            self._writing = False

    def commit(self, transaction: Transaction) -> Operation[Committed | Refused]:
        """Sends a transaction that checks the delivery position's epoch. Raises Fenced when another owner holds it."""
        verdict = yield from self.host.commit_until_settled(transaction)
        if isinstance(verdict, Refused) and any(key == keys.progress(self.shard) for key, _ in verdict.failed):
            raise Fenced(keys.progress(self.shard))
        return verdict

    def version_without_key(self, topic_id: str) -> str:
        """Returns the version of messages without a key whose record lies in this requests topic: who reads a topic that is newer than this
        holder's map may hand records over before this one hears of it.
        """
        known = self.versions_without_key.get(topic_id)
        return version_without_key(topic_id, self._first_topic) if known is None else known

    @property
    def is_draining(self) -> bool:
        return self._draining

    # -- rows in memory -----------------------------------------------------------------------------------------------

    def is_checkpointed(self, slot: int, message_id: str, version: str) -> bool:
        """Whether a checkpoint covers, or may come to cover, this place."""
        return self.checkpoints.covers((slot, message_id, version))

    def settle(self, row: QueuedMessage) -> None:
        """The row's writes are acknowledged."""
        self.slots.let_go(row)
        if row.slot <= self.window.taking_through:
            # The window may have been extended while it was being written, by a page that was read before it was there.
            self.slots.add(row)
        if (
            row.stage in (Stage.SENDING, Stage.DONE, Stage.GONE)
            or self.slots.get(row.id, row.version, row.slot) is not row
        ):
            return
        self._waiting.take(row)
        self.host.operations.raise_(self.changed)

    def close(self, row: QueuedMessage, stage: Stage, ended: Tally = NOTHING) -> None:
        """The row has come to its end: whatever it was, the checkpoint may pass it, and its payload is given back."""
        self.payloads.drop(row)
        row.stage, row.ended = stage, ended
        if row.occurrence is not None:
            self.recurring.closed(row)

    def has_ended(self, row: QueuedMessage) -> bool:
        """Whether the row was cancelled or replaced, or its schedule stopped or changed: it is not to be sent any more."""
        return self.guards.cover(row.id, row.version) or self.recurring.ended.cover(row)

    def is_dropped(self, row: QueuedMessage, message: Message) -> bool:
        """Whether a wide suspend has dropped the occurrence, which is not to be sent any more; what is no occurrence is held back."""
        return row.occurrence is not None and self.holding.has_dropped(
            message.namespace, self.recurring.due(row, message)
        )

    def withdraw(self, row: QueuedMessage) -> None:
        """The row was cancelled or replaced, and will not be sent."""
        if row.occurrence is not None:
            self.recurring.ended.withdraw(row)
            return
        self.close(row, Stage.GONE)
        self.checkpoints.count(CANCELLED)

    def add_loaded_row(self, timer: MessageTimer, *, from_store: bool = True) -> None:
        """Takes a row in; a closed one where the message is there already, for the checkpoint to pass it.

        A later attempt was made when this one had failed; the same attempt at another slot was written by a former owner,
        maybe late, for a create that was replayed.
        """
        occurrence = Occurrence.of(timer)
        siblings = [
            row
            for row in self.slots.of(timer.id)
            if row.version == timer.version and _generation(row.occurrence) == _generation(occurrence)
        ]
        double = any(
            row.attempt > timer.attempt or (row.attempt == timer.attempt and row.stage is not Stage.GONE)
            for row in siblings
        )
        for row in siblings:
            if row.attempt < timer.attempt and row.stage in (Stage.READY, Stage.WRITTEN):
                self.close(row, Stage.GONE)
        row = QueuedMessage(
            timer.slot,
            timer.id,
            timer.version,
            timer.origin,
            timer.attempt,
            Stage.GONE if double else Stage.READY,
            size=timer.size,
            maybe_sent=bool(timer.maybe_sent) or timer.slot <= self.maybe_sent_through,
            from_store=from_store,
            occurrence=occurrence,
            double=double,
        )
        if self.slots.add(row) and not double:
            self.recurring.refused.note(timer)
            self.settle(row)

    def take_moved(self, timer: MessageTimer) -> None:
        """Takes in what is to be tried again, also far ahead, while there is room; of the rest a cancel has to know all the same."""
        if timer.slot <= self.window.taking_through or len(self.slots) < ROWS_MAX:
            self.add_loaded_row(timer, from_store=False)
        else:
            self.next_attempts.leave(timer)

    def _load_page(self, items: Sequence[Item]) -> Operation[None]:
        """Guards are read now, consistently, and never while firing (DESIGN 5)."""
        read = yield from sort_out(self, items)
        timers = yield from self.elsewhere.without(read)
        found = yield from read_guards(self, {timer.id for timer in timers})
        live: Sequence[MessageTimer] = [
            timer
            for timer in timers
            if not self.guards.keep_out(found.get(timer.id), timer.version)
            and not self.is_checkpointed(timer.slot, timer.id, timer.version)
        ]
        live = yield from self.holding.without_held(live)
        yield from renew(self.host, self.shard, live)
        # Cancels that were applied since the guards were asked for are known in memory.
        for timer in live:
            if not self.guards.cover(timer.id, timer.version):
                self.add_loaded_row(timer)
        self.next_attempts.have_come(read)
        self.recurring.refused.have_come(from_item(MessageTimer, item) for item in items if "ref" in item)
        self.host.operations.raise_(self.changed)

    # -- payloads -----------------------------------------------------------------------------------------------------

    def load_payloads(self, rows: Sequence[QueuedMessage]) -> Operation[None]:
        """Brings payloads into memory; a row without message row is gone (its create never became durable)."""
        yield from self.recurring.load([row for row in rows if row.fire is not None])
        for row in (yield from self.payloads.load([row for row in rows if row.fire is None])):
            self.host.note("message_row_missing", shard=self.shard, id=row.id, slot=row.slot)
            self.close(row, Stage.GONE)

    def _load_payloads_ahead(self) -> Operation[None]:
        while not self._draining:
            horizon = self.host.now + PAYLOADS_AHEAD_MS
            rows = self.slots.unloaded(horizon, PAYLOADS_AHEAD_ROWS_MAX, self.payloads.room_ahead)
            if rows:
                yield from self.load_payloads(rows)
            else:
                yield from self.host.sleep(PAYLOADS_AHEAD_MS // 5, routine=True)


def _generation(occurrence: Occurrence | None) -> int | None:
    """Two generations of a schedule may make the same instant: an `at` that an update brings again while the former one moves."""
    return None if occurrence is None else occurrence.generation
