"""A shard's delivery plane: writes, loads, fires, checkpoints (DESIGN 5).

Nothing is written per delivery. What has been dealt with is a place in the order of the timer rows, moved once per batch; a
successor goes on from there, so what was sent after the last checkpoint of a crashed owner is sent again (I8).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tidegate_core.decisions.delivery_plane.cancelling import cancel_message
from tidegate_core.decisions.delivery_plane.delivering import deliver
from tidegate_core.decisions.delivery_plane.sending import send_messages
from tidegate_core.decisions.delivery_plane.slots import Slots, Slotted, Stage
from tidegate_core.decisions.host import Fenced, Host
from tidegate_core.decisions.operations import Operation, Signal
from tidegate_core.effects import Committed, Items, Read, ReadRange, Refused
from tidegate_core.model.position import Position
from tidegate_core.model.requests import MessageSend
from tidegate_core.records.codec import from_item
from tidegate_core.records.messages import Guard, Message, MessageTimer
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store import keys
from tidegate_core.store.values import Item, Key, Page, Put, RangeRead, Transaction
from tidegate_core.transactions.delivery import Progress, Tally, checkpoint, remove_inboxed

WINDOW_MS = 60_000
"""How far ahead timer rows are held in memory; extended at half of it."""
PAYLOADS_AHEAD_MS = 5_000
PAYLOAD_BYTES_MAX = 64_000_000
"""Payloads in memory per shard; above it they are read when their time is near."""
FIRED_TOGETHER = 500
GROUPS_UNDER_WAY_MAX = 20
"""Groups handed to the broker's client and not acknowledged: 10,000 records."""
CHECKPOINT_AFTER_FIRES = 1_000
CHECKPOINT_AFTER_MS = 5_000
"""I8's bound: at most this much repeats after a crash."""
GUARDS_MAX = 100_000
"""Raised guards in memory (10 MB), the latest ones: far more than are raised while one page is loaded."""
TALLY_MS = 60_000
CLOCKS_APART_MS = 1_000
"""Two nodes' clocks deviate by 500 ms each at most (DESIGN 3): the predecessor may have sent what is not due here yet."""


@dataclass(frozen=True, slots=True)
class Sending:
    """A create on its way into the plane.

    Attributes:
        position: Of its record.
        replay: A predecessor may have written its rows already.
        inboxed: It came through the inbox and not from the own topic partition.
    """

    request: MessageSend
    position: Position
    replay: bool
    inboxed: bool = False


class DeliveryPlane:
    """One per owned shard, from its fence on.

    Args:
        host: Shared parts of the partition actor.
        shard: 0 to S-1.
        progress: The delivery position as read at the fence, with the new epoch.
        position: Durable position of the own requests topic partition at the fence.
    """

    def __init__(self, host: Host, shard: int, progress: Progress, position: int) -> None:
        self.host = host
        self.shard = shard
        self.slots = Slots()
        self.durable = progress
        self.promised = (progress.slot, progress.id)
        self.maybe_sent_through = host.now + CLOCKS_APART_MS
        self.loaded_through = progress.slot
        self.guards: dict[str, str] = {}
        self.pending_origins: set[str] = set()
        self.payload_bytes = 0
        self.changed = Signal(f"slots {shard}")
        self.fired = Tally()
        self._position = position
        self._written: deque[Slotted] = deque()
        self._work: deque[Callable[[], Operation[None]]] = deque()
        self._work_signal = Signal(f"messages {shard}")
        self._writing = False
        self._groups = 0
        self._since_checkpoint = 0
        self._oldest_unwritten: int | None = None
        self._checkpointing = False
        self._tally_from = host.now
        self._draining = False

    # -- life ---------------------------------------------------------------------------------------------------------

    def recover(self, pending_origins: Sequence[str]) -> Operation[None]:
        """Loads the window behind the delivery position, then serves.

        Args:
            pending_origins: Creates that still lie in the inbox: their rows may be there and must wait for them.
        """
        self.pending_origins.update(pending_origins)
        yield from self._load_until(self.host.now + WINDOW_MS)
        for operation in (self._fire(), self._keep_loaded(), self._write_in_turn(), self._load_payloads_ahead()):
            self.host.operations.start(operation)

    def drain(self) -> Operation[None]:
        """Stops firing, waits for what is under way, writes the checkpoint: an orderly hand-over repeats nothing."""
        self._draining = True
        while self._groups or self._writing or self._checkpointing:
            yield from self.host.sleep(5)
        # What became ready meanwhile may lie behind what was sent: no checkpoint would pass that, so it goes out as well.
        rows = self.slots.take_due(self.host.now, FIRED_TOGETHER)
        if rows:
            yield from self._deliver(self._taken(rows))
        yield from self._checkpoint()

    @property
    def is_draining(self) -> bool:
        return self._draining

    # -- work from outside --------------------------------------------------------------------------------------------

    def send(self, messages: Sequence[Sending], done: Callable[[], None]) -> None:
        """Writes creates; calls back when they and their receipts are durable, and their position may pass."""
        self._queue(lambda: send_messages(self, messages, done))

    def take_inboxed(self, row: InboxRow, done: Callable[[], Operation[None]]) -> None:
        """Applies a send or cancel that another holder read; `done` removes the inbox row."""
        self.pending_origins.add(row.origin)
        self._queue(lambda: cancel_message(self, row, done))

    def position_is(self, next_offset: int) -> None:
        """The own position is durable up to here: creates below it may fire."""
        self._position = next_offset
        self._release(lambda row: isinstance(row.waits_for, int) and row.waits_for < next_offset)

    def inbox_row_gone(self, origin: str) -> None:
        """The inbox row's removal is durable: what it created may fire."""
        self.pending_origins.discard(origin)
        self._release(lambda row: row.waits_for == origin)

    def _queue(self, work: Callable[[], Operation[None]]) -> None:
        self._work.append(work)
        self.host.operations.raise_(self._work_signal)

    def _write_in_turn(self) -> Operation[None]:
        """One send or cancel at a time, in order of arrival: two of one message never overlap."""
        while not self._draining:
            if not self._work:
                yield self._work_signal
                continue
            self._writing = True
            yield from self._work.popleft()()
            self._writing = False

    def commit(self, transaction: Transaction) -> Operation[Committed | Refused]:
        """Sends a transaction that checks the delivery position's epoch. Raises Fenced when another owner holds it."""
        verdict = yield from self.host.commit_for_good(transaction)
        if isinstance(verdict, Refused) and any(key == keys.progress(self.shard) for key, _ in verdict.failed):
            raise Fenced(keys.progress(self.shard))
        return verdict

    def remove_inboxed(self, key: Key) -> Operation[None]:
        """Removes an inbox row that is dealt with."""
        yield from self.commit(remove_inboxed(self.shard, self.durable.epoch, key, self.host.token()))

    # -- rows in memory -----------------------------------------------------------------------------------------------

    def wait_reason(self, origin: str) -> int | str | None:
        """Returns what must be durable before a row of this origin may fire (see `Slotted.waits_for`)."""
        position = Position.parse(origin)
        requests, own = self.host.holding.requests, self.host.holding.topic_partition
        if (position.topic_id, position.topic_partition) == (requests.id, own):
            return position.offset if position.offset >= self._position else None
        return origin if origin in self.pending_origins else None

    def settle(self, row: Slotted) -> None:
        """The row's writes are acknowledged."""
        if row.slot <= self.loaded_through and self.slots.get(row.id, row.version, row.slot) is None:
            # The window was extended while the row was being written, and the page was read before it was there.
            self.slots.add(row)
        row.waits_for = self.wait_reason(row.origin)
        row.stage = Stage.READY if row.waits_for is None else Stage.WRITTEN
        if row.stage is Stage.WRITTEN:
            self._written.append(row)
        else:
            self.host.operations.raise_(self.changed)

    def _release(self, may_fire: Callable[[Slotted], bool]) -> None:
        still: deque[Slotted] = deque()
        for row in self._written:
            if row.stage is Stage.WRITTEN and may_fire(row):
                row.waits_for = None
                row.stage = Stage.READY
            elif row.stage is Stage.WRITTEN:
                still.append(row)
        self._written = still
        self.host.operations.raise_(self.changed)

    def slot_for(self, nominal: int) -> int:
        """Returns a slot that no checkpoint that was ever promised covers."""
        return max(nominal, self.promised[0] + 1)

    def is_passed(self, slot: int, message_id: str, version: str) -> bool:
        """Whether a checkpoint covers, or may come to cover, this place."""
        return (slot, f"{message_id}#{version}") <= self.promised

    def keeps_payload(self, slot: int, size: int) -> bool:
        near = slot <= self.host.now + WINDOW_MS
        return near and self.payload_bytes + size <= PAYLOAD_BYTES_MAX

    def remember_guard(self, message_id: str, live_from: str) -> None:
        """A load that was asked for before this guard was raised has to know of it; older ones are in the store."""
        self.guards[message_id] = max(live_from, self.guards.pop(message_id, ""))
        if len(self.guards) > GUARDS_MAX:
            del self.guards[next(iter(self.guards))]

    # -- loading ------------------------------------------------------------------------------------------------------

    def _keep_loaded(self) -> Operation[None]:
        while not self._draining:
            yield from self.host.sleep(WINDOW_MS // 2)
            yield from self._load_until(self.host.now + WINDOW_MS)

    def _load_until(self, horizon: int) -> Operation[None]:
        """Reads timer rows behind what is loaded, up to the horizon; live ones go to memory."""
        first_load = self.loaded_through == self.durable.slot
        low = f"D#{keys.instant_text(self.loaded_through + 1)}"
        if first_load:
            low = f"D#{keys.instant_text(self.durable.slot)}#{self.durable.id}"
        # From now on the plane's own writes up to the horizon go to memory by themselves.
        self.loaded_through = horizon
        after: str | None = None
        while True:
            wanted = RangeRead(
                keys.shard_pk(self.shard), low, f"D#{keys.instant_text(horizon)}#{keys.LAST}", after=after
            )
            page = yield from self.host.read_for_good(ReadRange(wanted))
            assert isinstance(page, Page)
            yield from self._load_page([from_item(MessageTimer, item) for item in page.items])
            after = page.next_after
            if after is None:
                return

    def _load_page(self, timers: Sequence[MessageTimer]) -> Operation[None]:
        """Guards are read now, consistently, and never while firing (DESIGN 5)."""
        wanted = {keys.message_guard(self.shard, timer.id) for timer in timers}
        found: dict[str, str] = {}
        if wanted:
            answer = yield from self.host.read_for_good(Read(tuple(sorted(wanted))))
            assert isinstance(answer, Items)
            guards = [from_item(Guard, item) for item in answer.found.values()]
            found = {guard.id: guard.live_from for guard in guards}
        for timer in timers:
            # Cancels that were applied since the guards were asked for are known in memory.
            live_from = max(found.get(timer.id, ""), self.guards.get(timer.id, ""))
            passed = self.is_passed(timer.slot, timer.id, timer.version)
            if timer.version >= live_from and not passed:
                self.take_loaded(timer)
        self.host.operations.raise_(self.changed)

    def take_loaded(self, timer: MessageTimer, *, maybe_sent: bool = False) -> None:
        """Takes a row in, unless a later attempt of the same message is there: that one was made when this one had failed."""
        siblings = [row for row in self.slots.of(timer.id) if row.version == timer.version]
        if any(row.attempt > timer.attempt for row in siblings):
            return
        for row in siblings:
            if row.attempt < timer.attempt and row.stage in (Stage.READY, Stage.WRITTEN):
                row.stage = Stage.GONE
        row = Slotted(
            timer.slot,
            timer.id,
            timer.version,
            timer.origin,
            timer.attempt,
            Stage.READY,
            maybe_sent=maybe_sent or timer.slot <= self.maybe_sent_through,
        )
        if self.slots.add(row):
            self.settle(row)

    def _load_payloads_ahead(self) -> Operation[None]:
        while not self._draining:
            rows = self.slots.unloaded(self.host.now + PAYLOADS_AHEAD_MS, FIRED_TOGETHER)
            if rows and self.payload_bytes < PAYLOAD_BYTES_MAX:
                yield from self.load_payloads(rows)
            else:
                yield from self.host.sleep(PAYLOADS_AHEAD_MS // 5)

    def load_payloads(self, rows: Sequence[Slotted]) -> Operation[None]:
        """Reads the message rows of timer rows; one without a message row is gone (its create never became durable)."""
        waiting_for: dict[Key, list[Slotted]] = {}
        for row in rows:
            if row.message is None:
                waiting_for.setdefault(keys.message(self.shard, row.id, row.version), []).append(row)
        if not waiting_for:
            return
        answer = yield from self.host.read_for_good(Read(tuple(waiting_for)))
        assert isinstance(answer, Items)
        for key, waiting in waiting_for.items():
            item = answer.found.get(key)
            for row in waiting:
                self._take_payload(row, item)

    def _take_payload(self, row: Slotted, item: Item | None) -> None:
        if item is None:
            self.host.note("message_row_missing", shard=self.shard, id=row.id, slot=row.slot)
            row.stage = Stage.GONE
        elif row.message is None:
            row.message = from_item(Message, item)
            self.payload_bytes += len(row.message.payload)

    # -- firing -------------------------------------------------------------------------------------------------------

    def _fire(self) -> Operation[None]:
        while not self._draining:
            rows = self.slots.take_due(self.host.now, FIRED_TOGETHER) if self._groups < GROUPS_UNDER_WAY_MAX else []
            if not rows:
                self._wake_at_next_slot()
                yield self.changed
                continue
            self.host.operations.start(self._deliver(self._taken(rows)))

    def _taken(self, rows: list[Slotted]) -> list[Slotted]:
        for row in rows:
            row.stage = Stage.SENDING
        self._groups += 1
        return rows

    def _wake_at_next_slot(self) -> None:
        upcoming = self.slots.next_slot()
        if upcoming is not None and upcoming > self.host.now:
            self.host.call_at(upcoming, lambda: self.host.operations.raise_(self.changed))

    def _deliver(self, rows: list[Slotted]) -> Operation[None]:
        self._arm_checkpoint()
        yield from deliver(self, rows)
        self._groups -= 1
        self._since_checkpoint += len(rows)
        self._arm_checkpoint()  # One may have been written while this group was under way, and could not pass it.
        if self._since_checkpoint >= CHECKPOINT_AFTER_FIRES:
            self._start_checkpoint()
        self.host.operations.raise_(self.changed)

    def pause_firing(self, milliseconds: int) -> Operation[None]:
        """The guard lapsed or the broker is away: what is due stays due."""
        yield from self.host.sleep(milliseconds)

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def _arm_checkpoint(self) -> None:
        if self._oldest_unwritten is None:
            self._oldest_unwritten = self.host.now
            self.host.call_at(self.host.now + CHECKPOINT_AFTER_MS, self._checkpoint_when_due)

    def _checkpoint_when_due(self) -> None:
        if self._oldest_unwritten is not None and not self._draining:
            self._start_checkpoint()

    def _start_checkpoint(self) -> None:
        if not self._checkpointing:
            self.host.operations.start(self._checkpoint())

    def _checkpoint(self) -> Operation[None]:
        """Moves the delivery position up to the first row that is still open."""
        self._checkpointing = True
        self._oldest_unwritten = None
        place = self.slots.passed()
        if place is not None:
            yield from self._write_checkpoint(place)
        self._checkpointing = False
        if len(self.slots) and not self._draining and self._since_checkpoint:
            self._arm_checkpoint()

    def _write_checkpoint(self, place: tuple[int, str]) -> Operation[None]:
        self._since_checkpoint = 0
        fired, self.fired = self.fired, Tally()
        tally = self.durable.tally.plus(fired)
        closed = self._closed_tally(tally)
        stored = Tally() if closed else tally
        # Promised before it is sent: from now on no row may get a slot that it covers.
        self.promised = max(self.promised, place)
        token = self.host.token()
        verdict = yield from self.host.commit_for_good(
            checkpoint(self.shard, self.durable, place[0], place[1], stored, closed, token)
        )
        if isinstance(verdict, Refused):
            raise Fenced(keys.progress(self.shard))
        self.durable = replace(self.durable, slot=place[0], id=place[1], tally=stored)

    def _closed_tally(self, tally: Tally) -> Put | None:
        """Returns the minute's ledger row once a minute has passed (what `audit` recomputes)."""
        if self.host.now - self._tally_from < TALLY_MS or tally == Tally():
            return None
        key = keys.closed_tally(self.shard, self.host.now, self.durable.epoch)
        item: Item = {
            "pk": key.pk,
            "sk": key.sk,
            "from": self._tally_from,
            "to": self.host.now,
            "delivered": tally.delivered,
            "expired": tally.expired,
            "cancelled": tally.cancelled,
            "dead": tally.dead,
            "digest": tally.digest,
        }
        self._tally_from = self.host.now
        return Put(key, item)
