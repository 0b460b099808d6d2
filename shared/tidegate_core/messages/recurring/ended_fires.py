"""ENDED"""

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
"""Schedules in memory whose earlier generations this owner has ended, the latest ones (10 MB): rows of longer ago are gone."""


class Adds(Protocol):
    """Puts a fire among the rows."""

    def __call__(self, fire: Fire, stage: Stage, ended: Tally) -> QueuedMessage: ...


class EndedFires:
    """One per shard."""

    def __init__(self, messages: ShardMessages, add: Adds) -> None:
        self._messages = messages
        self._add = add
        self._generations: dict[str, int] = {}
        self._moved: frozenset[tuple[str, str]] = frozenset()

    def read_moved(self, ended: Sequence[FireSeries], position: Place) -> Operation[None]:
        """Learns which of the fires of ended intervals the broker refused: their rows count what became of them."""
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
                # An `at` that was made anew, and refused as well, has its message row where the former one had its own.
                (moved if row["origin"] == fire.interval.origin else unclear).append(fire)
        if unclear:
            waiting = yield from self._waiting_since(position)
            moved += [fire for fire in unclear if (fire.message_id, fire.interval.generation) in waiting]
        self._moved = frozenset((fire.message_id, fire.interval.origin) for fire in moved)

    def _waiting_since(self, position: Place) -> Operation[AbstractSet[tuple[str, int]]]:
        """Returns message and generation of each fire that has a timer row behind the position, as far ahead as a refused one may have it."""
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
        """Recovery has counted them; from now on their rows do."""
        self._moved = frozenset()

    def end(self, ref: str, generation: int) -> None:
        """Nothing of this generation, or of earlier ones, is sent any more, wherever it is."""
        self._generations[ref] = max(generation, self._generations.pop(ref, -1))
        if len(self._generations) > ENDED_MAX:
            del self._generations[next(iter(self._generations))]

    def cover(self, row: QueuedMessage) -> bool:
        """Whether the row is of a generation that was ended."""
        return row.occurrence is not None and row.occurrence.generation <= self._generations.get(row.occurrence.ref, -1)

    def withdraw(self, row: QueuedMessage) -> None:
        """The row will not be sent; counted by the checkpoint that passes it, so that a successor counts it, or nobody."""
        self._messages.close(row, Stage.GONE, Tally(cancelled=1 if row.occurrence is None else row.occurrence.covered))
        self._messages.checkpoints.tell(row.slot)

    def cut(self, series: FireSeries, waiting: QueuedMessage | None) -> None:
        """A request has ended the interval: what waits is cancelled, and all that was due behind it.

        In one piece, 8 µs for each, because the row that tells of them has to be there before a checkpoint can pass them. They
        are what was due and not sent when the request came: a few, but for a broker that was away meanwhile.
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
        """A predecessor saw all of this come to its end, and fell before a checkpoint told: it is counted, not sent again.

        In one piece, as `cut`: it is what was acknowledged since the last checkpoint, and what was due then.
        """
        last, ended = None, NOTHING
        for fire in series.behind(behind):
            name = MessageName(fire.message_id, False)
            delivered = delivered_as(public_id(self._messages.shard, name, FIRST_VERSION), fire.count)
            tally = Tally(expired=fire.count) if fire.skipped else delivered
            last, ended = fire, ended.plus(self._unless_moved(fire, tally))
        for fire in series.cancelled(behind):
            # One that the broker refused may have got its rows after the request that ended it had found it on the wire.
            last, ended = fire, ended.plus(self._unless_moved(fire, Tally(cancelled=fire.count)))
        if last is not None:
            self._close_at(last, ended)

    def _unless_moved(self, fire: Fire, tally: Tally) -> Tally:
        return NOTHING if (fire.message_id, fire.interval.origin) in self._moved else tally

    def _close_at(self, fire: Fire, ended: Tally) -> None:
        row = self._messages.slots.get(fire.place[1], fire.place[2], fire.slot)
        self._messages.checkpoints.tell(fire.slot)
        if row is None:
            self._add(fire, Stage.GONE, ended)
        elif row.stage.is_closed:
            row.ended = row.ended.plus(ended)


WAITING_MAX = 100_000
"""Next attempts in memory (20 MB), where ten tries of a message last 20 min. Of what is beyond, a receipt does not say that it is withdrawn;
the tally does.
"""


class RefusedFires:
    """One per shard. A predecessor's rows that are not loaded yet come with `NextAttempts.learn_all`."""

    def __init__(self, messages: ShardMessages) -> None:
        self._messages = messages
        self._by_ref: dict[str, dict[Place, Occurrence]] = {}
        self._known = 0

    def note(self, timer: MessageTimer) -> None:
        """The row is in the store; nothing of a message without a schedule is kept."""
        occurrence = Occurrence.of(timer)
        if occurrence is None or self._known >= WAITING_MAX:
            return
        places = self._by_ref.setdefault(occurrence.ref, {})
        self._known += _place(timer) not in places
        places[_place(timer)] = occurrence

    def forget(self, place: Place, ref: str) -> None:
        """The attempt has come to its end, or has left for a later place."""
        places = self._by_ref.get(ref, {})
        if places.pop(place, None) is not None:
            self._known -= 1
            if not places:
                del self._by_ref[ref]

    def have_come(self, timers: Iterable[MessageTimer]) -> None:
        """Their page is loaded: those that memory did not take have ended."""
        for timer in timers:
            if timer.ref is not None:
                row = self._messages.slots.get(timer.id, timer.version, timer.slot)
                if row is None or row.stage.is_closed:
                    self.forget(_place(timer), timer.ref)

    def waiting_of(self, ref: str, generation: int) -> int:
        """Returns how many occurrences of a schedule's generation wait for another attempt, or are in one."""
        return sum(
            occurrence.covered
            for (_, message_id, version), occurrence in self._by_ref.get(ref, {}).items()
            if occurrence.generation == generation and not self._messages.fences.cover(message_id, version)
        )


def _place(timer: MessageTimer) -> Place:
    return (timer.slot, timer.id, timer.version)


def sort_out(messages: ShardMessages, items: Sequence[Item]) -> Operation[list[MessageTimer]]:
    """Takes the summons out of a page, and closes what belongs to a generation that was ended; returns the rest."""
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
    """It was refused by the broker once, and ended while it waited for its next attempt."""
    row = QueuedMessage(timer.slot, timer.id, timer.version, timer.origin, timer.attempt, Stage.GONE, from_store=True)
    row.ended, row.occurrence = Tally(cancelled=timer.covered or 1), Occurrence.of(timer)
    messages.checkpoints.tell(timer.slot)
    messages.slots.add(row)


def _state_key(shard: int, ref: str) -> Key:
    namespace, name = ref.split("/", 1)
    return keys.schedule_state(shard, namespace, name)


def _is_live(timer: MessageTimer, state_item: Item | None) -> bool:
    state = None if state_item is None else from_item(ScheduleState, state_item)
    return state is not None and state.status == "active" and state.generation == timer.generation
