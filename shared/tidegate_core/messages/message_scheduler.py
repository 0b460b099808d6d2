"""Takes creates and cancels of a shard's messages, and delivers the due messages.

The partition actor builds one scheduler per owned shard; ingest, the inbox and the shard actor call it. The scheduler wires
the parts together and orders recovery, writes and the hand-over. Each part writes its own rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from types import MappingProxyType

from tidegate_core.engine.actor_context import ActorContext, InvalidWrite
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.messages.one_shot.create_lookup import PendingCreate, Unkept
from tidegate_core.messages.one_shot.create_writer import send_messages
from tidegate_core.messages.one_shot.held_messages import HeldMessages
from tidegate_core.messages.one_shot.inbox_messages import InboxMessages
from tidegate_core.messages.recurring.ended_fires import sort_out
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.messages.wire.delivery import Firing
from tidegate_core.messages.wire.payload_budget import PAYLOADS_AHEAD_MS, PAYLOADS_AHEAD_ROWS_MAX
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.messages.wire.timer_window import renew
from tidegate_core.messages.wire.withheld_rows import read_fences
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import MessageTimer
from tidegate_core.rows.store_operations import Item
from tidegate_core.shard.map_transition import Positions
from tidegate_core.writes.message_delivery import Progress

CLOCKS_APART_MS = 1_000
"""The clocks of two nodes deviate by at most 500 ms each: the predecessor may have sent messages that are not due here."""


class MessageScheduler:
    """One per owned shard, from its fence on.

    Args:
        host: Shared parts of the partition actor.
        shard: 0 to S-1.
        progress: The delivery position as read at the fence, with the new epoch.
        position: Durable position of the owner's requests topic partition at the fence.
        former: Positions of the former map; empty for the first map.
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
        self.messages = messages = ShardMessages(
            host, shard, progress, position, former, host.now + CLOCKS_APART_MS, self._load_page
        )
        self.queue = messages.queue
        self.window = messages.window
        self.payloads = messages.payloads
        self.checkpoints = messages.checkpoints
        self.elsewhere = messages.elsewhere
        messages.holding = self.holding = HeldMessages(messages)
        messages.recurring = self.recurring = RecurringQueue(messages)
        messages.inboxed = self.inboxed = InboxMessages(messages, lambda: self._add_work(self.inboxed.apply))
        self._work: deque[Callable[[], Operation[None]]] = deque()
        self._work_signal = Signal(f"messages {shard}")
        self._writing = False
        self._firing = Firing(messages)

    # -- recovery and hand-over ---------------------------------------------------------------------------------------------------------

    def recover(self) -> Operation[None]:
        """Loads the window after the delivery position, then serves.

        The caller passes the inbox's messages to `inboxed` first: their rows may be stored and must wait for the inbox rows.
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
        """Stops deliveries, except of rows before places that were sent. All other due messages are left to the successor."""
        self._firing.closed = self.checkpoints.closed = True

    def drain(self) -> Operation[None]:
        """Stops deliveries, waits for those in progress, and writes the checkpoint: an orderly hand-over repeats nothing.

        The caller has waited until `waits_for_the_log` is false, so all rows before a sent place are loaded. A message without
        acknowledgement is sent again while a later message was delivered. The caller may cut the hand-over.
        """
        self.messages.is_draining = True
        self.stop_sending()
        yield from self.host.wait_while(lambda: not self._is_still())
        self.window.closed = True
        yield from self.recurring.summoned.bring_near()
        while not (yield from self._firing.send_leftovers()) or self._holds_fires_up():
            # After a cut, this checkpoint covers the rows before those that are left. Only the last write may keep the position.
            yield from self.checkpoints.write()
            if not self.queue.has_delivered:
                break
            yield from self.host.wait_while(self._holds_fires_up)
        yield from self.checkpoints.write(last=True)

    def _holds_fires_up(self) -> bool:
        """Returns whether fires before a sent place wait for work in progress.

        That is a request in the shard writer, which may hold a schedule, or the write of an outage.
        """
        return self.queue.holds_position or self.queue.late_fires_wait

    def _is_still(self) -> bool:
        under_way = self._writing or self.checkpoints.is_writing or self._holds_fires_up() or self._is_held_up()
        return self._firing.is_idle and not under_way

    def _is_held_up(self) -> bool:
        """Returns whether queued work keeps the position from passing a sent place: rows before that place wait for the work."""
        return bool(self._work) and any(self.messages.uncommitted.before(self.checkpoints.sent_through))

    @property
    def waits_for_the_log(self) -> bool:
        """Returns whether the position can pass a sent place only after more creates of the log are read.

        A predecessor wrote rows of these creates. Such rows may also be in pages that are still to be loaded.
        """
        waiting = self.messages.uncommitted.before(self.checkpoints.sent_through)
        return self._is_sent_ahead() or any(row.from_store and isinstance(row.waits_for, int) for row in waiting)

    def _is_sent_ahead(self) -> bool:
        """Returns whether a sent place lies after the window, which is being extended: until then the position cannot pass it."""
        return self.window.loaded_through < self.checkpoints.sent_through

    # -- creates and cancels --------------------------------------------------------------------------------------------

    def send(self, creates: Sequence[PendingCreate], done: Callable[[Sequence[Unkept]], None]) -> None:
        """Writes creates, and calls back once they and their receipts are durable and the log position may pass them.

        The callback gets the creates that the store does not take: they become dead letters.
        """
        self._add_work(lambda: self._send(creates, done))

    def _send(self, creates: Sequence[PendingCreate], done: Callable[[Sequence[Unkept]], None]) -> Operation[None]:
        done((yield from send_messages(self.messages, creates, self.inboxed.depends_on_log)))

    def position_is(self, next_offset: int) -> None:
        """Notes the durable position of the owner's requests topic partition: creates below it may be delivered."""
        self.messages.uncommitted.position_is(next_offset)
        self.inboxed.position_moved()
        self.host.operations.raise_(self.messages.changed)

    def _add_work(self, work: Callable[[], Operation[None]]) -> None:
        self._work.append(work)
        self.host.operations.raise_(self._work_signal)

    def _write_in_turn(self) -> Operation[None]:
        """Writes one batch at a time, in order of arrival, so two writes of one message never overlap.

        During a hand-over it writes only batches that hold up the delivery position.
        """
        while True:
            if not self._work or (self.messages.is_draining and not self._is_held_up()):
                yield self._work_signal
                continue
            self._writing = True
            try:
                yield from self._work.popleft()()
            except InvalidWrite as error:
                # The batch is applied and its inbox rows stay: their messages wait, at the latest for the next owner.
                self.host.failed("inboxed", f"shard {self.shard}", error)
            self._writing = False

    # -- loading ------------------------------------------------------------------------------------------------------

    def _load_page(self, items: Sequence[Item]) -> Operation[None]:
        """Adds the rows of one page. Fences are read here, consistently, and never during a delivery."""
        messages = self.messages
        self.recurring.summoned.take_from(items)
        read = yield from sort_out(messages, items)
        timers = yield from self.elsewhere.without(read)
        found = yield from read_fences(self.host, self.shard, {timer.id for timer in timers})
        live: Sequence[MessageTimer] = [
            timer
            for timer in timers
            if not messages.fences.keep_out(found.get(timer.id), timer.version)
            and not messages.is_checkpointed(timer.slot, timer.id, timer.version)
        ]
        live = yield from self.holding.without_held(live)
        yield from renew(self.host, self.shard, live)
        # Memory knows the cancels that were applied since the fences were read.
        for timer in live:
            if not messages.fences.cover(timer.id, timer.version):
                messages.add_loaded_row(timer)
        messages.next_attempts.have_come(read)
        self.recurring.refused.have_come(from_item(MessageTimer, item) for item in items if "ref" in item)
        self.host.operations.raise_(self.messages.changed)

    def _load_payloads_ahead(self) -> Operation[None]:
        while not self.messages.is_draining:
            horizon = self.host.now + PAYLOADS_AHEAD_MS
            rows = self.queue.unloaded(horizon, PAYLOADS_AHEAD_ROWS_MAX, self.payloads.room_ahead)
            if rows:
                yield from self.messages.load_payloads(rows)
            else:
                yield from self.host.sleep(PAYLOADS_AHEAD_MS // 5, routine=True)
