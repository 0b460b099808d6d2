"""Fires of recurring messages that end without a delivery, or that the broker has refused.

A request ends all fires of a schedule's generation: they are never sent, and each is counted once. A refused fire has rows until
its next attempt; a request that ends the schedule reports how many of these it withdraws. The recurring queue and the scheduler
call this module. It writes nothing: checkpoints store the counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from tidegate_core.engine.operations import Operation
from tidegate_core.messages.recurring.fire_series import Fire, FireSeries
from tidegate_core.messages.recurring.wake_rows import is_wake_row
from tidegate_core.messages.wire.due_queue import NOTHING, Occurrence, Place, QueuedMessage, Stage
from tidegate_core.messages.wire.message_record import delivered_as
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.messages.wire.timer_window import RETRY_LAST_MS
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read, ReadRange
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import FIRST_VERSION, MessageName, MessageTimer, public_id
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Item, Key, Page, RangeRead
from tidegate_core.writes.message_delivery import Tally

ENDED_MAX = 100_000
"""Schedules in memory whose generations this owner has ended, the latest ones (10 MB). Rows of older ones are gone."""


class Adds(Protocol):
    """Adds a fire to the queue."""

    def __call__(self, fire: Fire, stage: Stage, ended: Tally) -> QueuedMessage[Fire]: ...


class EndedFires:
    """Generations that were ended, and the counts of their fires. One per shard."""

    def __init__(self, messages: ShardMessages, add: Adds) -> None:
        self._messages = messages
        self._add = add
        self._generations: dict[str, int] = {}
        self._moved: frozenset[tuple[str, str]] = frozenset()

    def read_moved(self, ended: Sequence[FireSeries], position: Place) -> Operation[None]:
        """Finds the fires of ended intervals that the broker refused: their rows count the outcome."""
        fires = [fire for series in ended for fire in (*series.behind(position), *series.cancelled(position))]
        if not fires:
            return
        shard = self._messages.shard
        places = {fire.message_id: keys.message(shard, fire.message_id, FIRST_VERSION) for fire in fires}
        answer = yield from self._messages.host.read_for_good(Read(tuple(places.values())))
        assert isinstance(answer, Items)
        moved, unclear = list[Fire](), list[Fire]()
        for fire in fires:
            row = answer.found.get(places[fire.message_id])
            if row is not None:
                # Two generations may fire the same `at`. If both were refused, they share one message row.
                (moved if row["origin"] == fire.interval.origin else unclear).append(fire)
        if unclear:
            waiting = yield from self._waiting_since(position)
            moved += [fire for fire in unclear if (fire.message_id, fire.interval.generation) in waiting]
        self._moved = frozenset((fire.message_id, fire.interval.origin) for fire in moved)

    def _waiting_since(self, position: Place) -> Operation[AbstractSet[tuple[str, int]]]:
        """Returns message and generation of each fire with a timer row after the position, up to the latest slot of a next attempt."""
        host, found = self._messages.host, set[tuple[str, int]]()
        after = f"{keys.MESSAGE_TIMER_PREFIX}{keys.instant_text(position[0])}"
        high = f"{keys.MESSAGE_TIMER_PREFIX}{keys.instant_text(host.now + 2 * RETRY_LAST_MS)}#{keys.LAST}"
        while True:
            page = yield from host.read_for_good(
                ReadRange(RangeRead(keys.shard_pk(self._messages.shard), keys.MESSAGE_TIMER_PREFIX, high, after=after))
            )
            assert isinstance(page, Page)
            timers = [from_item(MessageTimer, item) for item in page.items]
            found.update((timer.id, timer.generation) for timer in timers if timer.ref is not None)
            if page.next_after is None:
                return found
            after = page.next_after

    def forget_moved(self) -> None:
        """Ends the recovery: from now on the rows of refused fires count their outcomes."""
        self._moved = frozenset()

    def end(self, ref: str, generation: int) -> None:
        """Ends this generation and all earlier ones: none of their fires is sent any more."""
        self._generations[ref] = max(generation, self._generations.pop(ref, -1))
        if len(self._generations) > ENDED_MAX:
            del self._generations[next(iter(self._generations))]

    def cover(self, row: QueuedMessage[Fire]) -> bool:
        """Returns whether the row belongs to an ended generation."""
        return row.occurrence is not None and row.occurrence.generation <= self._generations.get(row.occurrence.ref, -1)

    def withdraw(self, row: QueuedMessage[Fire]) -> None:
        """Closes a row as cancelled. The checkpoint that passes it counts it; if none does, a successor counts it."""
        self._messages.close(row, Stage.GONE, Tally(cancelled=1 if row.occurrence is None else row.occurrence.covered))
        self._messages.checkpoints.note_unsent(row.slot)

    def cut(self, series: FireSeries, waiting: QueuedMessage[Fire] | None) -> None:
        """Cancels the waiting fire of an ended interval, and all due fires after it.

        It runs in one step, 8 µs per fire: the row with their count must be in the queue before a checkpoint can pass them.
        They were due and unsent when the request came; there are few, unless the broker was away.
        """
        if waiting is None or waiting.stage.is_closed:
            return
        self._messages.close(waiting, Stage.GONE)
        last, ended = None, NOTHING
        for fire in series.cancelled((waiting.slot, "", "")):
            last, ended = fire, ended.plus(Tally(cancelled=fire.count))
        if last is not None:
            self._close_at(last, ended)

    def count(self, series: FireSeries, behind: Place) -> None:
        """Counts fires of an ended interval that a predecessor completed after its last checkpoint; they are not sent again.

        It runs in one step, as `cut` does: the fires were acknowledged after the last checkpoint, or were due then.
        """
        last, ended = None, NOTHING
        for fire in series.behind(behind):
            name = MessageName(fire.message_id, False)
            delivered = delivered_as(public_id(self._messages.shard, name, FIRST_VERSION), fire.count)
            tally = Tally(expired=fire.count) if fire.skipped else delivered
            last, ended = fire, ended.plus(self._unless_moved(fire, tally))
        for fire in series.cancelled(behind):
            # The broker may have refused a fire after the ending request had found it in delivery: its rows then count it.
            last, ended = fire, ended.plus(self._unless_moved(fire, Tally(cancelled=fire.count)))
        if last is not None:
            self._close_at(last, ended)

    def _unless_moved(self, fire: Fire, tally: Tally) -> Tally:
        return NOTHING if (fire.message_id, fire.interval.origin) in self._moved else tally

    def _close_at(self, fire: Fire, ended: Tally) -> None:
        row = self._messages.queue.get(fire.place[1], fire.place[2], fire.slot)
        self._messages.checkpoints.note_unsent(fire.slot)
        if row is None:
            self._add(fire, Stage.GONE, ended)
        elif row.stage.is_closed:
            row.ended = row.ended.plus(ended)


WAITING_MAX = 100_000
"""Next attempts in memory (20 MB); ten attempts of a message last 20 min. A receipt does not count attempts beyond this limit;
the tally does.
"""


class RefusedFires:
    """Next attempts of refused fires. One per shard. `NextAttempts.learn_all` adds a predecessor's rows that are not loaded."""

    def __init__(self, messages: ShardMessages) -> None:
        self._messages = messages
        self._by_ref: dict[str, dict[Place, Occurrence]] = {}
        self._known = 0

    def note(self, timer: MessageTimer) -> None:
        """Notes a stored row of a next attempt; rows of one-shot messages are ignored."""
        occurrence = Occurrence.of(timer)
        if occurrence is None or self._known >= WAITING_MAX:
            return
        places = self._by_ref.setdefault(occurrence.ref, {})
        self._known += _place(timer) not in places
        places[_place(timer)] = occurrence

    def forget(self, place: Place, ref: str) -> None:
        """Notes that the attempt has ended or moved to a later slot."""
        places = self._by_ref.get(ref, {})
        if places.pop(place, None) is not None:
            self._known -= 1
            if not places:
                del self._by_ref[ref]

    def have_come(self, timers: Iterable[MessageTimer]) -> None:
        """Forgets attempts of a loaded page that did not enter the due queue: they have ended."""
        for timer in timers:
            if timer.ref is not None:
                row = self._messages.queue.get(timer.id, timer.version, timer.slot)
                if row is None or row.stage.is_closed:
                    self.forget(_place(timer), timer.ref)

    def waiting_of(self, ref: str, generation: int) -> int:
        """Returns how many occurrences of a schedule's generation wait for an attempt or are in one."""
        return sum(
            occurrence.covered
            for (_, message_id, version), occurrence in self._by_ref.get(ref, {}).items()
            if occurrence.generation == generation and not self._messages.fences.cover(message_id, version)
        )


def _place(timer: MessageTimer) -> Place:
    return (timer.slot, timer.id, timer.version)


def sort_out(messages: ShardMessages, items: Sequence[Item]) -> Operation[list[MessageTimer]]:
    """Returns the timer rows of messages in a page, except refused fires of ended generations, which it closes."""
    timers = [from_item(MessageTimer, item) for item in items if not is_wake_row(item)]
    wanted = {timer.ref: _state_key(messages.shard, timer.ref) for timer in timers if timer.ref is not None}
    if not wanted:
        return timers
    answer = yield from messages.host.read_for_good(Read(tuple(wanted.values())))
    assert isinstance(answer, Items)
    live: list[MessageTimer] = []
    for timer in timers:
        if timer.ref is None or _is_live(timer, answer.found.get(wanted[timer.ref])):
            live.append(timer)
        elif not messages.is_checkpointed(timer.slot, timer.id, timer.version):
            _close_loaded(messages, timer)
    return live


def _close_loaded(messages: ShardMessages, timer: MessageTimer) -> None:
    """Counts a refused fire as cancelled: its generation ended while it waited for its next attempt."""
    row = QueuedMessage(timer.slot, timer.id, timer.version, timer.origin, timer.attempt, Stage.GONE, from_store=True)
    row.ended, row.occurrence = Tally(cancelled=timer.covered or 1), Occurrence.of(timer)
    messages.checkpoints.note_unsent(timer.slot)
    messages.queue.add(row)


def _state_key(shard: int, ref: str) -> Key:
    namespace, name = ref.split("/", 1)
    return keys.schedule_state(shard, namespace, name)


def _is_live(timer: MessageTimer, state_item: Item | None) -> bool:
    state = None if state_item is None else from_item(ScheduleState, state_item)
    return state is not None and state.status == "active" and state.generation == timer.generation
