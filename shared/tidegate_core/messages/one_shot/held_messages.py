"""Holds due messages while a scope suspension covers their namespace, and releases them at the resume; none is dropped.

A due message of a suspended namespace loses its timer row and gets a held row without a time, so it holds up no checkpoint. Both
moves are numbered, conditional transactions: a message is in one place, and a late repeat of a move is refused. The covered
namespaces are kept in memory only (`controls`). They derive from the stored scope suspensions, which a successor reads before its
first delivery. Delivery, cancels and `ShardSuspension` call this module.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from tidegate_core.engine.actor_context import Fenced, InvalidWrite
from tidegate_core.engine.operations import Mutex, Operation
from tidegate_core.messages.one_shot.held_payloads import HeldPayloads
from tidegate_core.messages.wire.due_queue import CANCELLED, QueuedMessage, Stage
from tidegate_core.messages.wire.message_record import WIRE_PATIENCE_MS
from tidegate_core.messages.wire.row_expiry import row_expiry, write
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.messages.wire.withheld_rows import read_fences
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read, ReadRange, Refused
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import HeldMessage, Message, MessageTimer
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, ScopeSuspensions
from tidegate_core.rows.store_operations import Delete, Page, RangeRead, Transaction
from tidegate_core.writes.fencing import whole
from tidegate_core.writes.message_delivery import hold_messages, release_messages

MOVED_TOGETHER = 30
"""Messages in one transaction: two actions each, and 8 MB at most while their payloads are in memory."""
RELEASE_AHEAD_MAX = 5_000
"""Released messages that wait for delivery in memory; the others wait in the store."""
CHECK_MS = 10


class Move(Protocol):
    """Builds the transaction of one move."""

    def __call__(self, shard: int, epoch: int, moves: int, *, token: str) -> Transaction: ...


class HeldMessages:
    """The held messages of a shard.

    Attributes:
        controls: Present scope suspensions; set before the first delivery and at each change.
    """

    def __init__(self, messages: ShardMessages) -> None:
        self.controls = NO_SUSPENSIONS
        self._messages = messages
        self._moving: dict[tuple[str, str], bool] = {}
        """Messages that are being held or released, and whether an owner may have sent them before."""
        self._empty_under: int | None = None
        self._released: deque[QueuedMessage] = deque()
        self._moves: int | None = None
        self._turn = Mutex(messages.host.operations, f"held {messages.shard}")
        self._payloads = HeldPayloads(messages)

    def covered(self, namespace: str) -> bool:
        """Returns whether a suspension covers the namespace now. A delivery asks in the step in which it produces."""
        return self.controls.covers(namespace)

    def has_dropped(self, namespace: str, due: int) -> bool:
        """Returns whether a suspension has dropped a recurring message that was due at this instant.

        Recurring messages are never held. An occurrence that was due during a suspension is no misfire; an unsent one from before
        is dropped.
        """
        return self.controls.has_dropped(namespace, due)

    def begin(self, controls: ScopeSuspensions, done: int) -> Operation[bool]:
        """Sets the suspensions before the first load and delivery.

        Args:
            controls: Scope suspensions as read after the fence.
            done: Version of them for which a predecessor has released all messages that the store took.

        Returns:
            Whether a predecessor may have left held messages that no suspension covers.
        """
        self.controls = controls
        if done != controls.version:
            return False  # The caller releases all of them for the new version.
        if controls.version:
            first = RangeRead(
                keys.shard_pk(self._messages.shard), *keys.prefix_range(keys.HELD_MESSAGE_PREFIX), limit=1
            )
            page = yield from self._messages.host.read_for_good(ReadRange(first))
            assert isinstance(page, Page)
            if page.items:
                return True  # All of them may be covered; `release` finds out.
        if not controls.suspend_anything:
            self._empty_under = done
        return False

    def without_held(self, timers: Sequence[MessageTimer]) -> Operation[Sequence[MessageTimer]]:
        """Returns the timers of a page whose messages are not held.

        A timer row may be written again, late, after its message was held, also by a predecessor. If no message can be held,
        nothing is read.
        """
        if self._empty_under == self.controls.version or not timers:
            return timers
        messages = self._messages
        wanted = {keys.held_message(messages.shard, each.id, each.version): each for each in timers}
        found = yield from messages.host.read_for_good(Read(tuple(wanted)))
        assert isinstance(found, Items)
        return [each for each in timers if keys.held_message(messages.shard, each.id, each.version) not in found.found]

    # -- holding -------------------------------------------------------------------------------------

    def split_held(
        self, rows: Sequence[tuple[QueuedMessage, Message]]
    ) -> tuple[list[tuple[QueuedMessage, Message]], list[tuple[QueuedMessage, Message]]]:
        """Returns the rows that may be delivered, and the rows to hold. The caller produces in the same step."""
        free = [each for each in rows if not self.covered(each[1].namespace)]
        covered = [each for each in rows if self.covered(each[1].namespace)] if len(free) < len(rows) else []
        self._moving.update(((row.id, row.version), row.maybe_sent) for row, _ in covered)
        return free, covered

    def hold(self, rows: Sequence[tuple[QueuedMessage, Message]]) -> Operation[None]:
        """Moves due rows out of the checkpoint's way; each of them is then GONE. Raises InvalidWrite."""
        try:
            for first in range(0, len(rows), MOVED_TOGETHER):
                yield from self._hold_group(rows[first : first + MOVED_TOGETHER])
        except InvalidWrite:
            self._have_moved((row.id, row.version) for row, _ in rows)
            raise

    def _hold_group(self, group: Sequence[tuple[QueuedMessage, Message]]) -> Operation[None]:
        # A held message never expires, so its payload must not expire. A repeated or late write says the same.
        yield from self._payloads.keep([message for _, message in group], for_ever=True)
        held = [_held(row, message) for row, message in group]
        yield from self._commit(partial(hold_messages, held=held))
        for row, _ in group:
            self._messages.close(row, Stage.GONE)
            self._have_moved([(row.id, row.version)])

    # -- a change of the suspensions -------------------------------------------------------------------------------------

    def on_their_way(self) -> list[QueuedMessage]:
        """Returns the rows that the broker's client may have got before the suspensions changed."""
        return [row for row in self._messages.queue if row.stage is Stage.SENDING]

    def settle(self, rows: Collection[QueuedMessage]) -> Operation[None]:
        """Waits, for a limited time, until the rows in delivery are delivered or held (invariant I7)."""
        give_up = self._messages.host.now + WIRE_PATIENCE_MS
        while self._messages.host.now < give_up and any(self._may_be_covered(row) for row in rows):
            yield from self._messages.host.sleep(CHECK_MS)

    def _may_be_covered(self, row: QueuedMessage) -> bool:
        return row.stage is Stage.SENDING and (row.message is None or self.covered(row.message.namespace))

    def release(self) -> Operation[bool]:
        """Gives each held message that no suspension covers a slot, as early as possible.

        Returns:
            Whether all were released. Messages that the store did not take stay held, and so do the others if the suspensions
            change first.
        """
        yield from self._until_still(
            tuple(self._moving)
        )  # The former suspensions covered the messages that are being held.
        messages, after, controls, all_of_it = self._messages, "", self.controls, True
        while True:
            wanted = RangeRead(
                keys.shard_pk(messages.shard), *keys.prefix_range(keys.HELD_MESSAGE_PREFIX), after=after or None
            )
            page = yield from messages.host.read_for_good(ReadRange(wanted))
            assert isinstance(page, Page)
            rows = [
                row for row in (from_item(HeldMessage, item) for item in page.items) if not self.covered(row.namespace)
            ]
            for first in range(0, len(rows), MOVED_TOGETHER):
                yield from self._until_there_is_room(controls)
                if self.controls is not controls:
                    return False  # The shard must come under the new suspensions without waiting for a broker.
                all_of_it &= yield from self._release_rows(rows[first : first + MOVED_TOGETHER])
            if page.next_after is None:
                break
            after = page.next_after

        if all_of_it and not controls.suspend_anything:
            self._empty_under = controls.version
        return all_of_it

    def _release_rows(self, rows: Sequence[HeldMessage]) -> Operation[bool]:
        """Releases rows; returns False if the store does not take one of them, which then stays held."""
        try:
            yield from self._release_group(rows)
        except InvalidWrite as error:
            if len(rows) == 1:
                self._messages.host.failed("let_go", f"shard {self._messages.shard}", error)
                return False
            all_of_it = True
            for row in rows:
                all_of_it &= yield from self._release_rows([row])
            return all_of_it
        return True

    def _release_group(self, rows: Sequence[HeldMessage]) -> Operation[None]:
        messages = self._messages
        fences = yield from read_fences(messages.host, messages.shard, {row.id for row in rows})
        # The request that raised a fence discards the messages below it, and may need to find them held.
        group = [
            row
            for row in rows
            if not self.covered(row.namespace)
            and not (row.id in fences and fences[row.id].covers(row.version))
            and not messages.fences.cover(row.id, row.version)
        ]
        if not group:
            return
        named = {(row.id, row.version): row.maybe_sent for row in group}
        self._moving |= named
        try:
            yield from self._give_slots(group)
        except InvalidWrite:
            self._have_moved(named)
            raise
        self._have_moved(named)

    def _give_slots(self, group: list[HeldMessage]) -> Operation[None]:
        messages = self._messages
        timers = [_timer(row, messages.checkpoints.slot_for(messages.host.now)) for row in group]
        places = [_placeholder(timer) for timer in timers]
        left = [messages.queue.get(each.id, each.version, each.slot) for each in timers]
        for place in places:
            messages.queue.hold(place)  # No checkpoint passes the place during the write.
        try:
            yield from self._commit(partial(release_messages, timers=timers))
        except InvalidWrite:
            for place in places:
                messages.queue.end_hold(place)
            raise
        # Before the rows are in the queue: a message that is held again at once must not get an expiry afterwards.
        yield from messages.host.safely("give_an_end", f"{messages.shard}", self._payloads.give_an_end(group))
        for place, timer, before in zip(places, timers, left, strict=True):
            messages.queue.end_hold(place)
            if before is not None and messages.queue.get(timer.id, timer.version, timer.slot) is before:
                # The message was held from this very place, and no checkpoint has passed it.
                messages.queue.discard(before)
            messages.add_loaded_row(timer, from_store=False)
            taken = messages.queue.get(timer.id, timer.version, timer.slot)
            self._released.extend([taken] if taken is not None else [])
        messages.host.operations.raise_(messages.changed)

    def _until_there_is_room(self, controls: ScopeSuspensions) -> Operation[None]:
        while len(self._released) > RELEASE_AHEAD_MAX and self.controls is controls:
            if self._released[0].stage.is_closed:
                self._released.popleft()
            else:
                yield from self._messages.host.sleep(CHECK_MS)

    def keep_endless(self) -> Operation[None]:
        """Keeps the payloads of held messages without expiry, until the operation ends with the owner."""
        yield from self._payloads.keep_endless(self._turn, self._may_hold)

    def _may_hold(self) -> bool:
        return self.controls.version > 0 and self._empty_under != self.controls.version

    # -- cancelled or replaced ----------------------------------------------------------------------------------------

    def maybe_sent(self, versions: Sequence[Message]) -> Operation[Mapping[str, bool]]:
        """Returns, by version, whether an owner may have sent it before. Only held versions, and those in a move, are included."""
        if not self.controls.version or not versions:
            return {}
        named = [(message.id, message.version) for message in versions]
        moving = {each[1]: self._moving[each] for each in named if each in self._moving}
        return moving | {row.version: row.maybe_sent for row in (yield from self._held_back(versions)).values()}

    def discard(self, versions: Sequence[Message]) -> Operation[Mapping[str, bool]]:
        """Removes the held versions of a message; returns, by version, whether an owner may have sent it before.

        The result includes versions that are in a move now, when their fence is known. A version that is released first is
        withdrawn at its delivery, and a checkpoint may have passed it by then.

        The fence of these versions is raised. So no owner holds or releases them from now on, and a late removal does no harm.
        """
        if not self.controls.version or not versions:
            return {}
        messages = self._messages
        named = [(message.id, message.version) for message in versions]
        moving = {each[1]: self._moving[each] for each in named if each in self._moving}
        yield from self._until_still(named)
        held = yield from self._held_back(versions)
        if held:
            yield from self._payloads.keep([message for message in versions if message.version in held], for_ever=False)
            yield from write(messages.host, "discard", [Delete(row.key(messages.shard)) for row in held.values()])
            for _ in held:
                messages.checkpoints.count(CANCELLED)
        return moving | {version: row.maybe_sent for version, row in held.items()}

    def _held_back(self, versions: Sequence[Message]) -> Operation[dict[str, HeldMessage]]:
        wanted = tuple(keys.held_message(self._messages.shard, each.id, each.version) for each in versions)
        found = yield from self._messages.host.read_for_good(Read(wanted))
        assert isinstance(found, Items)
        return {row.version: row for row in (from_item(HeldMessage, item) for item in found.found.values())}

    def _commit(self, move: Move) -> Operation[None]:
        """Commits one move at a time: each consumes the number that the last one stored. Raises Fenced."""
        yield from self._turn.of(self._commit_next(move))

    def _commit_next(self, move: Move) -> Operation[None]:
        messages = self._messages
        if self._moves is None:
            self._moves = yield from self._read_moves()
        transaction = move(messages.shard, messages.checkpoints.durable.epoch, self._moves, token=messages.host.token())
        verdict = yield from messages.commit(transaction)
        if isinstance(verdict, Refused):
            raise Fenced(keys.held_moves(messages.shard))  # Another owner has made a move.
        self._moves += 1

    def _read_moves(self) -> Operation[int]:
        key = keys.held_moves(self._messages.shard)
        found = yield from self._messages.host.read_for_good(Read((key,)))
        assert isinstance(found, Items)
        return whole(found.found[key], "moves") if key in found.found else 0

    def _have_moved(self, rows: Iterable[tuple[str, str]]) -> None:
        for each in rows:
            self._moving.pop(each, None)

    def _until_still(self, named: Collection[tuple[str, str]]) -> Operation[None]:
        """Waits until none of these messages is in a move."""
        while not self._moving.keys().isdisjoint(named):
            yield from self._messages.host.sleep(CHECK_MS)


def _held(row: QueuedMessage, message: Message) -> HeldMessage:
    return HeldMessage(
        id=row.id,
        version=row.version,
        namespace=message.namespace,
        origin=row.origin,
        slot=row.slot,
        attempt=row.attempt,
        size=row.size,
        maybe_sent=row.maybe_sent,
    )


def _timer(row: HeldMessage, slot: int) -> MessageTimer:
    return MessageTimer(
        slot=slot,
        id=row.id,
        version=row.version,
        origin=row.origin,
        attempt=row.attempt,
        expires_at=row_expiry(slot),
        size=row.size,
        maybe_sent=row.maybe_sent or None,
    )


def _placeholder(timer: MessageTimer) -> QueuedMessage:
    return QueuedMessage(
        timer.slot, timer.id, timer.version, timer.origin, timer.attempt, Stage.WRITING, size=timer.size
    )
