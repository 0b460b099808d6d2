"""Recurring messages of a shard, in memory: of each that is near its next fire waits among the rows (DESIGN 5).

Everything in here derives from `C#` records: from those that recovery reads, and from those that the lane has written. Taking
a fire puts the next one in its place at once, so that no checkpoint can pass it, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tidegate_core.decisions.delivery_plane.loading import place_of
from tidegate_core.decisions.delivery_plane.outgoing import delivered_as
from tidegate_core.decisions.delivery_plane.recurring import Fire, Series
from tidegate_core.decisions.delivery_plane.recurring_loading import Templates
from tidegate_core.decisions.delivery_plane.slots import NOTHING, Occurrence, Place, Slotted, Stage
from tidegate_core.decisions.operations import Operation
from tidegate_core.effects import Items, Read
from tidegate_core.records.codec import from_item
from tidegate_core.records.messages import FIRST_VERSION, Message, MessageName, MessageTimer, public_id
from tidegate_core.records.recurring import Interval, Recurring, Summons
from tidegate_core.records.run_plane import ScheduleState
from tidegate_core.store import keys
from tidegate_core.store.values import Item, Key
from tidegate_core.transactions.delivery import Tally

if TYPE_CHECKING:
    from tidegate_core.decisions.delivery_plane.plane import DeliveryPlane

PLACED_LOOK_MS = 10_000
"""How often those whose record may belong elsewhere by now are looked at: it is a matter of cost alone."""
ENDED_MAX = 100_000
"""Schedules in memory whose earlier generations this owner has ended, the latest ones (10 MB): rows of longer ago are gone."""
FIRST_ATTEMPT = 1


@dataclass(slots=True, eq=False)
class _Near:
    """A record in memory.

    Attributes:
        series: Fires of its open interval; None when it has none.
        next: The fire that waits; None when there is no further one.
    """

    record: Recurring
    series: Series | None = None
    next: Slotted | None = None

    @property
    def generation(self) -> int | None:
        """Of the open interval."""
        return None if self.series is None else self.series.interval.generation


class Belongs(NamedTuple):
    """Where a record belongs.

    Attributes:
        spans: What is left of its intervals.
        first: Fire of the open one that is to come next.
        is_near: Something of it has to be known at a recovery.
    """

    spans: list[Interval]
    first: Fire | None
    is_near: bool


class RecurringSource:
    """One per shard."""

    def __init__(self, plane: DeliveryPlane) -> None:
        self.plane = plane
        self._near: dict[str, _Near] = {}
        self._read: list[Recurring] = []
        self._open: dict[str, list[Slotted]] = {}
        self._ended: dict[str, int] = {}
        self._displaced: dict[str, None] = {}
        self._moved: frozenset[str] = frozenset()
        self._templates = Templates(plane)
        self._place: Callable[[str, Key | None], None] | None = None
        self._place_alone: Callable[[str, Key], Operation[None]] | None = None
        self._summoned: dict[Key, str] = {}

    # -- records in and out -------------------------------------------------------------------------------------------

    def begin(
        self,
        records: Sequence[Item],
        place: Callable[[str, Key | None], None],
        place_alone: Callable[[str, Key], Operation[None]],
    ) -> None:
        """Takes what was read at the fence.

        Args:
            records: All `C#` items.
            place: Has the lane decide where a schedule's record belongs, and remove the row that asked for it.
            place_alone: Does the same beside a lane that takes no more work.
        """
        self._read = [from_item(Recurring, item) for item in records]
        self._place, self._place_alone = place, place_alone

    def recover(self) -> Operation[None]:
        """Puts what is to be sent among the rows, before anything is loaded, fired or passed."""
        ended = [self.series_of(record, span) for record in self._read for span in record.spans() if not span.is_open]
        self._moved = yield from self._moved_of(ended)
        for record in self._read:
            self._take_in(record, self.position)
            self._displaced[record.ref] = None
        self._read, self._moved = [], frozenset()

    def _moved_of(self, ended: Sequence[Series]) -> Operation[frozenset[str]]:
        """Returns which of the fires of ended intervals the broker refused: their rows count what became of them."""
        wanted = {
            keys.message(self.plane.shard, fire.message_id, FIRST_VERSION): fire.message_id
            for series in ended
            for fire in series.behind(self.position)
        }
        if not wanted:
            return frozenset()
        answer = yield from self.plane.host.read_for_good(Read(tuple(wanted)))
        assert isinstance(answer, Items)
        return frozenset(wanted[key] for key in answer.found)

    def learn(self, key: Key, item: Item | None) -> None:
        """The lane has written this row of the shard."""
        kind, _, name = key.sk.partition("#")
        if kind == "C" and item is None:
            self._forget(name)
        elif kind == "C" and item is not None:
            self._take_in(from_item(Recurring, item), self.promised)
        elif kind == "D" and item is not None and _is_summons(item):
            summons = from_item(Summons, item)
            # It may come so late that the window was extended past it; what lies behind is loaded in its turn.
            if summons.slot <= self.plane.window.taking_through:
                self._summon(summons)

    @property
    def position(self) -> Place:
        """What is certainly done."""
        return self.plane.checkpoints.stored

    @property
    def promised(self) -> Place:
        """What a successor may find done."""
        return self.plane.checkpoints.promised

    def series_of(self, record: Recurring, interval: Interval) -> Series:
        return Series(record.namespace, record.name, interval, self.plane.checkpoints.durable.gaps)

    def _take_in(self, record: Recurring, behind: Place) -> None:
        before = self._near.get(record.ref)
        near = self._near[record.ref] = _Near(record)
        for interval in record.spans():
            series = self.series_of(record, interval)
            was_open = before is not None and before.generation == interval.generation
            if interval.is_open and before is not None and was_open:
                near.series, near.next = before.series, before.next
            elif interval.is_open:
                near.series = series
                self._await_next(near, behind)
            elif before is not None and was_open:
                self._cut(series, before.next)
            elif before is None:
                self._count(series, behind)
        if near.next is None:
            self._displaced[record.ref] = None
        self.plane.host.operations.raise_(self.plane.changed)

    def _forget(self, ref: str) -> None:
        near = self._near.pop(ref, None)
        if near is not None and near.next is not None and near.next.stage is Stage.READY:
            self.plane.slots.discard(near.next)

    # -- what waits ---------------------------------------------------------------------------------------------------

    def _await_next(self, near: _Near, behind: Place) -> None:
        """Puts the next fire behind a place among the rows; those that are not to be sent are closed from the outset."""
        assert near.series is not None
        near.next = None
        fire = near.series.after(behind)
        while fire is not None and fire.skipped:
            self.add(fire, Stage.DONE, Tally(expired=fire.count))
            fire = near.series.after(fire.place)
        if fire is not None:
            near.next = self.add(fire, Stage.READY)
        if fire is None or fire.slot > self.plane.host.now + self.plane.host.holding.recurring_near_ms:
            self._displaced[near.record.ref] = None

    def add(self, fire: Fire, stage: Stage, ended: Tally = NOTHING) -> Slotted:
        """Puts a fire among the rows."""
        slot, series, version = fire.place
        origin, size = fire.interval.origin, fire.interval.size
        row = Slotted(slot, series, version, origin, FIRST_ATTEMPT, stage, size=size, ended=ended)
        row.fire, row.occurrence = fire, Occurrence(fire.ref, fire.interval.generation)
        self.plane.slots.add(row)
        return row

    def taken(self, rows: Sequence[Slotted]) -> None:
        """Rows were taken to be sent: what follows on a fire takes its place at once."""
        for row in rows:
            if row.occurrence is None:
                continue
            ref = row.occurrence.ref
            self._open[ref] = [each for each in self._open.get(ref, ()) if not each.stage.is_closed and each is not row]
            self._open[ref].append(row)
            near = self._near.get(ref)
            if near is not None and near.next is row:
                self._await_next(near, row.place)

    def open_rows(self, ref: str) -> list[Slotted]:
        """Returns what was taken, or waits, and has not come to its end."""
        near = self._near.get(ref)
        waiting = [near.next] if near is not None and near.next is not None else []
        return [row for row in [*self._open.get(ref, ()), *waiting] if not row.stage.is_closed]

    @staticmethod
    def due(row: Slotted, message: Message) -> int:
        """Returns when an occurrence became due: one before its schedule's activation did with that."""
        return message.nominal if row.fire is None else row.fire.slot

    def is_near(self, ref: str) -> bool:
        return ref in self._near

    # -- what a request has ended -------------------------------------------------------------------------------------

    def end(self, ref: str, generation: int) -> None:
        """Nothing of this generation, or of earlier ones, is sent any more, wherever it is."""
        self._ended[ref] = max(generation, self._ended.pop(ref, -1))
        if len(self._ended) > ENDED_MAX:
            del self._ended[next(iter(self._ended))]

    def has_ended(self, row: Slotted) -> bool:
        return row.occurrence is not None and row.occurrence.generation <= self._ended.get(row.occurrence.ref, -1)

    def withdraw(self, row: Slotted) -> None:
        """The row will not be sent; counted by the checkpoint that passes it, so that a successor counts it, or nobody."""
        self.plane.close(row, Stage.GONE, Tally(cancelled=1 if row.fire is None else row.fire.count))
        self.plane.checkpoints.tell(row.slot)

    def _cut(self, series: Series, waiting: Slotted | None) -> None:
        """A request has ended the interval: what waits is cancelled, and all that was due behind it."""
        if waiting is None or waiting.stage.is_closed:
            return
        self.plane.close(waiting, Stage.GONE)
        last, ended = None, NOTHING
        for fire in series.cancelled((waiting.slot, "", "")):
            last, ended = fire, ended.plus(Tally(cancelled=fire.count))
        if last is not None:
            self._close_at(last, ended)

    def _count(self, series: Series, behind: Place) -> None:
        """A predecessor saw all of this come to its end, and fell before a checkpoint told: it is counted, not sent again."""
        last, ended = None, NOTHING
        for fire in series.behind(behind):
            name = MessageName(fire.message_id, False)
            delivered = delivered_as(public_id(self.plane.shard, name, FIRST_VERSION), fire.count)
            last, ended = fire, ended.plus(NOTHING if fire.message_id in self._moved else delivered)
        for fire in series.cancelled(behind):
            last, ended = fire, ended.plus(Tally(cancelled=fire.count))
        if last is not None:
            self._close_at(last, ended)

    def _close_at(self, fire: Fire, ended: Tally) -> None:
        row = self.plane.slots.get(fire.place[1], fire.place[2], fire.slot)
        self.plane.checkpoints.tell(fire.slot)
        if row is None:
            self.add(fire, Stage.GONE, ended)
        elif row.stage.is_closed:
            row.ended = row.ended.plus(ended)

    # -- rows of the store --------------------------------------------------------------------------------------------

    def sort_out(self, items: Sequence[Item]) -> Operation[list[MessageTimer]]:
        """Takes the summons out of a page, and closes what belongs to a generation that was ended; returns the rest."""
        for item in items:
            if _is_summons(item):
                self._summon(from_item(Summons, item))
        timers = [from_item(MessageTimer, item) for item in items if not _is_summons(item)]
        wanted = {timer.ref: self._state_key(timer.ref) for timer in timers if timer.ref is not None}
        if not wanted:
            return timers
        answer = yield from self.plane.host.read_for_good(Read(tuple(wanted.values())))
        assert isinstance(answer, Items)
        live: list[MessageTimer] = []
        for timer in timers:
            if timer.ref is None or _is_live(timer, answer.found.get(wanted[timer.ref])):
                live.append(timer)
            elif timer.moved_to is None and not self.plane.is_passed(timer.slot, timer.id, timer.version):
                self._close_loaded(timer, timer.ref)
        return live

    def _close_loaded(self, timer: MessageTimer, ref: str) -> None:
        """It was refused by the broker once, and ended while it waited for its next attempt."""
        row = Slotted(timer.slot, timer.id, timer.version, timer.origin, timer.attempt, Stage.GONE, from_store=True)
        row.ended, row.occurrence = Tally(cancelled=1), Occurrence(ref, timer.generation)
        self.plane.checkpoints.tell(timer.slot)
        self.plane.slots.add(row)

    def _state_key(self, ref: str) -> Key:
        namespace, name = ref.split("/", 1)
        return keys.schedule_state(self.plane.shard, namespace, name)

    def _summon(self, summons: Summons) -> None:
        """A far record's time comes near: no checkpoint passes this place before it is in memory."""
        row = Slotted(summons.slot, summons.id, summons.version, "", 0, Stage.WRITTEN, size=0)
        if self.plane.slots.add(row) and self._place is not None:
            ref, key = keys.schedule_ref(summons.namespace, summons.name), summons.key(self.plane.shard)
            self._summoned[key] = ref
            self._place(ref, key)

    def bring_leftovers_near(self) -> Operation[None]:
        """At a drain: what was summoned before places that were sent already, and the lane did not come to.

        No checkpoint passes a summons, so the successor would send again what was sent behind it.
        """
        sent = self.plane.checkpoints.sent_through
        for key, ref in list(self._summoned.items()):
            if place_of(key.sk) <= sent and self._place_alone is not None:
                yield from self._place_alone(ref, key)

    def answered(self, summons: Key) -> None:
        """The lane has done what the row asked for, and removed it."""
        self._summoned.pop(summons, None)
        slot, message_id, version = place_of(summons.sk)
        row = self.plane.slots.get(message_id, version, slot)
        if row is not None:
            self.plane.close(row, Stage.GONE)

    # -- where records belong -----------------------------------------------------------------------------------------

    def keep_placed(self) -> Operation[None]:
        """Has records moved out, or removed, whose last fires are durably done and whose next one is far or never."""
        while True:
            yield from self.plane.host.sleep(PLACED_LOOK_MS)
            for ref in list(self._displaced):
                near = self._near.get(ref)
                belongs = None if near is None else self.belongs(near.record, near.record.spans())
                if near is None or belongs is None or not belongs.is_near:
                    del self._displaced[ref]
                    if near is not None and self._place is not None:
                        self._place(ref, None)
                elif len(belongs.spans) == 1 and near.next is not None and not self._is_far(near.next.slot):
                    del self._displaced[ref]

    def belongs(self, record: Recurring, spans: Sequence[Interval]) -> Belongs:
        """Returns where a record of these intervals belongs, by what is certainly done.

        Ended intervals are kept until then, so that a successor counts what this owner has seen and no checkpoint told.
        """
        kept = [span for span in spans if span.is_open or self._has_more(record, span)]
        following = [self.series_of(record, span).after(self.position) for span in kept if span.is_open]
        first = following[0] if following else None
        is_near = any(not span.is_open for span in kept) or (first is not None and not self._is_far(first.slot))
        return Belongs(kept, first, is_near)

    def _has_more(self, record: Recurring, interval: Interval) -> bool:
        series = self.series_of(record, interval)
        return series.after(self.position) is not None or any(True for _ in series.cancelled(self.position))

    def _is_far(self, slot: int) -> bool:
        host = self.plane.host
        return slot > host.now + host.holding.recurring_near_ms

    # -- payloads -----------------------------------------------------------------------------------------------------

    def load(self, rows: Sequence[Slotted]) -> Operation[None]:
        """Gives fires their messages."""
        yield from self._templates.load(rows)


def _is_summons(item: Item) -> bool:
    return "attempt" not in item


def _is_live(timer: MessageTimer, state_item: Item | None) -> bool:
    state = None if state_item is None else from_item(ScheduleState, state_item)
    return state is not None and state.status == "active" and state.generation == timer.generation
