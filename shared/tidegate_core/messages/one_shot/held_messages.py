"""Messages under a wide suspend: held back when their time comes, let go at the resume, never dropped (SEMANTICS 10).

A message that is due while its namespace is suspended loses its timer row and gets a row without a time, so that it holds up
no checkpoint. Both moves are conditional transactions, numbered one after the other: a message is in one place, and a move that
comes again, late, is refused. Which namespaces are covered is kept in memory only (`controls`); it derives from the
controls' item, and a successor reads that before it sends anything.
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
"""Messages that are let go and not delivered yet: the others wait in the store, not in memory."""
CHECK_MS = 10


class Move(Protocol):
    """Builds the transaction of one move."""

    def __call__(self, shard: int, epoch: int, moves: int, *, token: str) -> Transaction: ...


class HeldMessages:
    """One per delivery messages.

    Attributes:
        controls: Present wide controls; set before anything is sent, and at each change.
    """

    def __init__(self, messages: ShardMessages) -> None:
        self.controls = NO_SUSPENSIONS
        self._messages = messages
        self._moving: dict[tuple[str, str], bool] = {}
        """What is on its way from one place to another, and whether somebody may have sent it before."""
        self._empty_under: int | None = None
        self._let_go: deque[QueuedMessage] = deque()
        self._moves: int | None = None
        self._turn = Mutex(messages.host.operations, f"held {messages.shard}")
        self._payloads = HeldPayloads(messages)

    def covered(self, namespace: str) -> bool:
        """Whether nothing of the namespace may be sent now. Asked in the very step in which something would be."""
        return self.controls.covers(namespace)

    def has_dropped(self, namespace: str, due: int) -> bool:
        """Whether a recurring message that was due then is not sent any more: it is never held back. What was due in a
        suspended span is no miss, and what was due before it is dropped (SEMANTICS 10).
        """
        return self.controls.has_dropped(namespace, due)

    def begin(self, controls: ScopeSuspensions, done: int) -> Operation[bool]:
        """Before anything is loaded or sent.

        Args:
            controls: As read after the fence.
            done: Version for which a predecessor has let go all that the store took.

        Returns:
            Whether it may have left something that nobody covers any more.
        """
        self.controls = controls
        if done != controls.version:
            return False  # All of it is let go anyway.
        if controls.version:
            first = RangeRead(
                keys.shard_pk(self._messages.shard), *keys.prefix_range(keys.HELD_MESSAGE_PREFIX), limit=1
            )
            page = yield from self._messages.host.read_for_good(ReadRange(first))
            assert isinstance(page, Page)
            if page.items:
                return True  # Or all of it is covered: whoever lets go finds out.
        if not controls.suspend_anything:
            self._empty_under = done
        return False

    def without_held(self, timers: Sequence[MessageTimer]) -> Operation[Sequence[MessageTimer]]:
        """Returns what is not held back: its timer row may have been written once more, late, after it was.

        Asked when a page is loaded, by an owner that does not know what its predecessor held back; where nothing can be
        held back it costs nothing.
        """
        if self._empty_under == self.controls.version or not timers:
            return timers
        messages = self._messages
        wanted = {keys.held_message(messages.shard, each.id, each.version): each for each in timers}
        found = yield from messages.host.read_for_good(Read(tuple(wanted)))
        assert isinstance(found, Items)
        return [each for each in timers if keys.held_message(messages.shard, each.id, each.version) not in found.found]

    # -- in the way of a delivery -------------------------------------------------------------------------------------

    def split_held(
        self, rows: Sequence[tuple[QueuedMessage, Message]]
    ) -> tuple[list[tuple[QueuedMessage, Message]], list[tuple[QueuedMessage, Message]]]:
        """Returns what may be sent, and what is held back instead; the caller sends without a pause in between."""
        free = [each for each in rows if not self.covered(each[1].namespace)]
        covered = [each for each in rows if self.covered(each[1].namespace)] if len(free) < len(rows) else []
        self._moving.update(((row.id, row.version), row.maybe_sent) for row, _ in covered)
        return free, covered

    def hold(self, rows: Sequence[tuple[QueuedMessage, Message]]) -> Operation[None]:
        """Moves rows that are due out of the checkpoint's way; each of them is GONE then. Raises InvalidWrite."""
        try:
            for first in range(0, len(rows), MOVED_TOGETHER):
                yield from self._hold_group(rows[first : first + MOVED_TOGETHER])
        except InvalidWrite:
            self._have_moved((row.id, row.version) for row, _ in rows)
            raise

    def _hold_group(self, group: Sequence[tuple[QueuedMessage, Message]]) -> Operation[None]:
        # What is held back has no end: its payload must not have one either. Repeated or late it says the same.
        yield from self._payloads.keep([message for _, message in group], for_ever=True)
        held = [_held(row, message) for row, message in group]
        yield from self._commit(partial(hold_messages, held=held))
        for row, _ in group:
            self._messages.close(row, Stage.GONE)
            self._have_moved([(row.id, row.version)])

    # -- a change of the controls -------------------------------------------------------------------------------------

    def on_their_way(self) -> list[QueuedMessage]:
        """Returns what may have been handed to the broker's client before the controls changed."""
        return [row for row in self._messages.slots if row.stage is Stage.SENDING]

    def settle(self, rows: Collection[QueuedMessage]) -> Operation[None]:
        """Waits, not for ever, until what was on its way has arrived, or is held back (I7)."""
        give_up = self._messages.host.now + WIRE_PATIENCE_MS
        while self._messages.host.now < give_up and any(self._may_be_covered(row) for row in rows):
            yield from self._messages.host.sleep(CHECK_MS)

    def _may_be_covered(self, row: QueuedMessage) -> bool:
        return row.stage is Stage.SENDING and (row.message is None or self.covered(row.message.namespace))

    def release(self) -> Operation[bool]:
        """Gives everything that is held back, and not covered any more, a slot: as soon as possible.

        Returns:
            Whether that was all of it; what the store did not take is still held back, and what was left when the controls changed.
        """
        yield from self._until_still(tuple(self._moving))  # What is being held back now was covered before.
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
                    return False  # Whoever brings the shard under the new ones must not wait for a broker.
                all_of_it &= yield from self._let_go_what_can_be(rows[first : first + MOVED_TOGETHER])
            if page.next_after is None:
                break
            after = page.next_after

        if all_of_it and not controls.suspend_anything:
            self._empty_under = controls.version
        return all_of_it

    def _let_go_what_can_be(self, rows: Sequence[HeldMessage]) -> Operation[bool]:
        """Returns whether that was all of them: what the store does not take stays held back, alone."""
        try:
            yield from self._let_go_group(rows)
        except InvalidWrite as error:
            if len(rows) == 1:
                self._messages.host.failed("let_go", f"shard {self._messages.shard}", error)
                return False
            all_of_it = True
            for row in rows:
                all_of_it &= yield from self._let_go_what_can_be([row])
            return all_of_it
        return True

    def _let_go_group(self, rows: Sequence[HeldMessage]) -> Operation[None]:
        messages = self._messages
        guards = yield from read_fences(messages.host, messages.shard, {row.id for row in rows})
        # What a guard covers is discarded by the request that raised it, which may have to be told that it was held back.
        group = [
            row
            for row in rows
            if not self.covered(row.namespace)
            and not (row.id in guards and guards[row.id].covers(row.version))
            and not messages.fences.cover(row.id, row.version)
        ]
        if not group:
            return
        named = {(row.id, row.version): row.maybe_sent for row in group}
        self._moving |= named
        try:
            yield from self._slot_anew(group)
        except InvalidWrite:
            self._have_moved(named)
            raise
        self._have_moved(named)

    def _slot_anew(self, group: list[HeldMessage]) -> Operation[None]:
        messages = self._messages
        timers = [_timer(row, messages.checkpoints.slot_for(messages.host.now)) for row in group]
        places = [_placeholder(timer) for timer in timers]
        left = [messages.slots.get(each.id, each.version, each.slot) for each in timers]
        for place in places:
            messages.slots.hold(place)  # No checkpoint passes it while it is being written.
        try:
            yield from self._commit(partial(release_messages, timers=timers))
        except InvalidWrite:
            for place in places:
                messages.slots.let_go(place)
            raise
        # While nobody else has them: one that is held back again, at once, must not get its end after that.
        yield from messages.host.safely("give_an_end", f"{messages.shard}", self._payloads.give_an_end(group))
        for place, timer, before in zip(places, timers, left, strict=True):
            messages.slots.let_go(place)
            if before is not None and messages.slots.get(timer.id, timer.version, timer.slot) is before:
                # It was held back from this very place, and no checkpoint has passed that yet.
                messages.slots.discard(before)
            messages.add_loaded_row(timer, from_store=False)
            taken = messages.slots.get(timer.id, timer.version, timer.slot)
            self._let_go.extend([taken] if taken is not None else [])
        messages.host.operations.raise_(messages.changed)

    def _until_there_is_room(self, controls: ScopeSuspensions) -> Operation[None]:
        while len(self._let_go) > RELEASE_AHEAD_MAX and self.controls is controls:
            if self._let_go[0].stage.is_closed:
                self._let_go.popleft()
            else:
                yield from self._messages.host.sleep(CHECK_MS)

    def keep_endless(self) -> Operation[None]:
        """Sees to it, for good, that what is held back can be sent however long the suspension lasts."""
        yield from self._payloads.keep_endless(self._turn, self._may_hold)

    def _may_hold(self) -> bool:
        return self.controls.version > 0 and self._empty_under != self.controls.version

    # -- cancelled or replaced ----------------------------------------------------------------------------------------

    def maybe_sent(self, versions: Sequence[Message]) -> Operation[Mapping[str, bool]]:
        """Returns, of those of a message's versions that are held back, or on their way there or back, whether somebody may have sent
        them, by version.
        """
        if not self.controls.version or not versions:
            return {}
        named = [(message.id, message.version) for message in versions]
        moving = {each[1]: self._moving[each] for each in named if each in self._moving}
        return moving | {row.version: row.maybe_sent for row in (yield from self._held_back(versions)).values()}

    def discard(self, versions: Sequence[Message]) -> Operation[Mapping[str, bool]]:
        """Removes those of a message's versions that are held back, and returns whether somebody may have sent them, by version.

        So too of what is on its way when its guard is known, which is now: let go meanwhile it is withdrawn when its turn comes, and may
        be passed by then.

        Their guard is raised: so nobody holds them back or lets them go from now on, and a removal that comes late finds
        nothing that anybody wants.
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
        """Makes a move, one at a time: each consumes the number of those before it. Raises Fenced."""
        yield from self._turn.of(self._commit_next(move))

    def _commit_next(self, move: Move) -> Operation[None]:
        messages = self._messages
        if self._moves is None:
            self._moves = yield from self._read_moves()
        transaction = move(messages.shard, messages.checkpoints.durable.epoch, self._moves, token=messages.host.token())
        verdict = yield from messages.commit(transaction)
        if isinstance(verdict, Refused):
            raise Fenced(keys.held_moves(messages.shard))  # Somebody else has moved them.
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
        """Waits until none of these is on its way from one place to another."""
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
