"""A shard's delivery plane: takes creates and cancels, and sends what is due (DESIGN 5).

Its parts keep their own state: the rows in memory (`slots`), what of the store is among them (`window`), their payloads'
budget (`payloads`), what is being sent (`Firing`), the delivery position (`checkpoints`), what must not be sent any more
(`guards`), and the schedules whose fires have no rows (`recurring`).
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
"""Two nodes' clocks deviate by 500 ms each at most (DESIGN 3): the predecessor may have sent what is not due here yet."""


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
        self.slots = messages.slots
        self.window = messages.window
        self.payloads = messages.payloads
        self.checkpoints = messages.checkpoints
        self.elsewhere = messages.elsewhere
        messages.holding = self.holding = HeldMessages(messages)
        messages.recurring = self.recurring = RecurringQueue(messages)
        messages.inboxed = self.inboxed = InboxMessages(messages, lambda: self._queue(self.inboxed.apply))
        self._work: deque[Callable[[], Operation[None]]] = deque()
        self._work_signal = Signal(f"messages {shard}")
        self._writing = False
        self._firing = Firing(messages)

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
        self.messages.is_draining = True
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
        return bool(self._work) and any(self.messages.uncommitted.before(self.checkpoints.sent_through))

    @property
    def waits_for_the_log(self) -> bool:
        """Whether the position cannot pass what was sent before creates are read again that a predecessor wrote rows of; such rows may also
        be among those that are loaded yet.
        """
        waiting = self.messages.uncommitted.before(self.checkpoints.sent_through)
        return self._is_sent_ahead() or any(row.from_store and isinstance(row.waits_for, int) for row in waiting)

    def _is_sent_ahead(self) -> bool:
        """Whether the position cannot pass all that was sent before the window is extended: that is being done."""
        return self.window.loaded_through < self.checkpoints.sent_through

    # -- work from outside --------------------------------------------------------------------------------------------

    def send(self, creates: Sequence[PendingCreate], done: Callable[[Sequence[Unkept]], None]) -> None:
        """Writes creates; calls back when they and their receipts are durable, and their position may pass, with those of
        them that are dead letters instead.
        """
        self._queue(lambda: self._send(creates, done))

    def _send(self, creates: Sequence[PendingCreate], done: Callable[[Sequence[Unkept]], None]) -> Operation[None]:
        done((yield from send_messages(self.messages, creates, self.inboxed.depends_on_log)))

    def position_is(self, next_offset: int) -> None:
        """The own position is durable up to here: creates below it may fire."""
        self.messages.uncommitted.position_is(next_offset)
        self.inboxed.position_moved()
        self.host.operations.raise_(self.messages.changed)

    def _queue(self, work: Callable[[], Operation[None]]) -> None:
        self._work.append(work)
        self.host.operations.raise_(self._work_signal)

    def _write_in_turn(self) -> Operation[None]:
        """One send or cancel at a time, in order of arrival: two of one message never overlap. Amid a hand-over only while they hold it up."""
        while True:
            if not self._work or (self.messages.is_draining and not self._is_held_up()):
                yield self._work_signal
                continue
            self._writing = True
            try:
                yield from self._work.popleft()()
            except InvalidWrite as error:
                # What is applied and cannot leave the inbox: its messages wait, for the next owner at the latest.
                self.host.failed("inboxed", f"shard {self.shard}", error)
            self._writing = False

    # -- rows in memory -----------------------------------------------------------------------------------------------

    def _load_page(self, items: Sequence[Item]) -> Operation[None]:
        """Guards are read now, consistently, and never while firing (DESIGN 5)."""
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
        # Cancels that were applied since the guards were asked for are known in memory.
        for timer in live:
            if not messages.fences.cover(timer.id, timer.version):
                messages.add_loaded_row(timer)
        messages.next_attempts.have_come(read)
        self.recurring.refused.have_come(from_item(MessageTimer, item) for item in items if "ref" in item)
        self.host.operations.raise_(self.messages.changed)

    # -- payloads -----------------------------------------------------------------------------------------------------

    def _load_payloads_ahead(self) -> Operation[None]:
        while not self.messages.is_draining:
            horizon = self.host.now + PAYLOADS_AHEAD_MS
            rows = self.slots.unloaded(horizon, PAYLOADS_AHEAD_ROWS_MAX, self.payloads.room_ahead)
            if rows:
                yield from self.messages.load_payloads(rows)
            else:
                yield from self.host.sleep(PAYLOADS_AHEAD_MS // 5, routine=True)
