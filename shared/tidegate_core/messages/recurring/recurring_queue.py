"""Holds the near recurring messages of a shard in memory, and puts the next fire of each into the due queue.

All state here derives from the `C#` records that recovery reads or the shard writer has written. When a fire is taken, the next
fire enters the queue in the same step, so no checkpoint can pass it. This module writes no row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate_core.engine.operations import Operation
from tidegate_core.messages.recurring.ended_fires import EndedFires, RefusedFires
from tidegate_core.messages.recurring.fire_series import Fire, FireSeries, version_of
from tidegate_core.messages.recurring.message_template import Templates
from tidegate_core.messages.recurring.wake_rows import Placement, WakeRows, belongs_of, is_wake_row
from tidegate_core.messages.wire.delivery_retries import RETRY_FIRST_MS
from tidegate_core.messages.wire.due_queue import NOTHING, Occurrence, Place, QueuedMessage, Stage
from tidegate_core.messages.wire.message_record import not_sent
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import Message
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.recurring_message import Interval, Recurring, WakeRow, series_id
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.writes.message_delivery import Tally

PLACED_CHECK_MS = 10_000
"""Pause between two checks of records that may have to move; a late move only costs a little more."""
FIRST_ATTEMPT = 1
SEARCH_PAUSE_MS = 50
"""Pause between two pieces of a search, of some 10 ms each: the next fire is due an hour later at the earliest."""


@dataclass(slots=True, eq=False)
class _Near:
    """A record in memory.

    Attributes:
        series: Fires of its open interval; None when it has none.
        next: Row of the next fire or of the end of a search; None when no fire is left.
    """

    record: Recurring
    series: FireSeries | None = None
    next: QueuedMessage[Fire] | None = None

    @property
    def bound(self) -> QueuedMessage[Fire] | None:
        """Row of the end of a search; None if a fire waits."""
        row = self.next
        return row if row is not None and row.stage is Stage.WRITTEN else None

    @property
    def generation(self) -> int | None:
        """Generation of the open interval."""
        return None if self.series is None else self.series.interval.generation


class RecurringQueue:
    """The near recurring messages. One per shard."""

    def __init__(self, messages: ShardMessages) -> None:
        self.messages = messages
        self._near: dict[str, _Near] = {}
        self._read: list[Recurring] = []
        self._open: dict[str, dict[QueuedMessage[Fire], None]] = {}
        self._displaced: dict[str, None] = {}
        self._templates = Templates(messages)
        self._place: Callable[[str, Key | None], None] | None = None
        self.summoned = WakeRows(messages, self.is_near)
        self.ended = EndedFires(messages, self.add)
        self.refused = RefusedFires(messages)
        self._sent_through = 0

    # -- records ------------------------------------------------------------------------------------------------------

    def begin(
        self,
        records: Sequence[Item],
        place: Callable[[str, Key | None], None],
        place_alone: Callable[[str, Key], Operation[None]],
    ) -> None:
        """Takes the records that were read at the fence.

        Args:
            records: All `C#` items.
            place: Lets the shard writer decide where a schedule's record belongs, and remove the wake row that asked.
            place_alone: Does the same after the shard writer is closed.
        """
        self._read = [from_item(Recurring, item) for item in records]
        self._place = place
        self.summoned.begin(place, place_alone)

    def recover(self) -> Operation[None]:
        """Adds the next fires to the queue, before the first load, delivery and checkpoint."""
        ended = [self.series_of(record, span) for record in self._read for span in record.spans() if not span.is_open]
        yield from self.ended.read_moved(ended, self.position)
        for record in self._read:
            self._take_in(record, self.position)
            self._displaced[record.ref] = None
        self._read = []
        self.ended.forget_moved()

    def learn(self, key: Key, item: Item | None) -> None:
        """Notes a row that the shard writer has written."""
        prefix, name = keys.split_prefix(key)
        if prefix == keys.RECURRING_PREFIX and item is None:
            self._forget(name)
        elif prefix == keys.RECURRING_PREFIX and item is not None:
            self._take_in(from_item(Recurring, item), self.promised)
        elif prefix == keys.MESSAGE_TIMER_PREFIX and item is not None and is_wake_row(item):
            self.summoned.learn(from_item(WakeRow, item))

    @property
    def position(self) -> Place:
        """The stored delivery position."""
        return self.messages.checkpoints.stored

    @property
    def promised(self) -> Place:
        """The position that a successor may find stored."""
        return self.messages.checkpoints.promised

    def series_of(self, record: Recurring, interval: Interval) -> FireSeries:
        return FireSeries(record.namespace, record.name, interval, self.messages.checkpoints.durable.gaps)

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
                self._await_next(near, self.taken_through(record, interval, behind))
            elif before is not None and was_open:
                self.ended.cut(series, before.next)
            elif before is None:
                self.ended.count(series, self.taken_through(record, interval, behind))
        if before is not None and before.next is not near.next:
            self._give_up(before)  # Its interval had no fire left, and the record no longer has the interval.
        if near.next is None:
            self._displaced[record.ref] = None
        self.messages.host.operations.raise_(self.messages.changed)

    def taken_through(self, record: Recurring, interval: Interval, behind: Place) -> Place:
        """Returns the place of the interval's last taken fire that no checkpoint has passed, or `behind`.

        Such fires were taken before the record moved out.
        """
        rows = self.messages.queue.of(series_id(record.namespace, record.name))
        taken = (row.place for row in rows if row.fire is not None and row.version == version_of(interval))
        return max([behind, *taken])

    def _forget(self, ref: str) -> None:
        near = self._near.pop(ref, None)
        if near is not None:
            self._give_up(near)

    def _give_up(self, near: _Near) -> None:
        """Removes the waiting row: its fire is never sent and not counted."""
        if near.next is not None and near.next.stage in (Stage.READY, Stage.WRITTEN):
            self.messages.close(near.next, Stage.GONE)  # Its payload may be loaded, or is being read.
            self.messages.queue.discard(near.next)

    # -- next fires ---------------------------------------------------------------------------------------------------

    def _await_next(self, near: _Near, behind: Place) -> None:
        """Adds the next fire after a place to the queue; fires that catch-up leaves out are added as closed.

        If the search ended first, its end is added: no checkpoint passes that row, and it is never sent.
        """
        assert near.series is not None
        near.next = None
        fire = near.series.after(behind)
        while fire is not None and fire.skipped:
            self.add(fire, Stage.DONE, Tally(expired=fire.count))
            self.messages.checkpoints.note_unsent(fire.slot)
            first = fire.nominal if fire.covered is None else fire.covered.first
            not_sent(self.messages.host, fire.ref, "outage", fire.count, first, fire.nominal)
            fire = near.series.after(fire.place)
        if fire is not None:
            near.next = self.add(fire, Stage.WRITTEN if fire.is_bound else Stage.READY)
        if fire is None or self._is_far(fire.slot):
            self._displaced[near.record.ref] = None
        elif fire.is_bound:
            self.messages.host.operations.start(self._search_on(near.record.ref))

    def _search_on(self, ref: str) -> Operation[None]:
        """Continues a search after a pause, in which other operations run."""
        yield from self.messages.host.sleep(SEARCH_PAUSE_MS)
        near = self._near.get(ref)
        row = None if near is None else near.bound
        if near is not None and row is not None:
            self.messages.queue.discard(row)
            self._await_next(near, (row.slot, "", ""))
            self.messages.host.operations.raise_(self.messages.changed)

    def add(self, fire: Fire, stage: Stage, ended: Tally = NOTHING) -> QueuedMessage[Fire]:
        """Adds a fire to the queue."""
        slot, series, version = fire.place
        origin, size = fire.interval.origin, fire.interval.size
        row = QueuedMessage(slot, series, version, origin, FIRST_ATTEMPT, stage, size=size, ended=ended)
        row.fire, row.occurrence = fire, Occurrence(fire.ref, fire.interval.generation, fire.count)
        is_new = self.messages.queue.add(row)
        assert is_new  # A second row at its place would never be taken, and no fire would follow.
        return row

    def taken(self, rows: Sequence[QueuedMessage[Fire]]) -> None:
        """Notes rows that were taken for delivery; the next fire of each schedule enters the queue in this step."""
        for row in rows:
            if row.occurrence is None:
                continue
            if row.fire is not None:
                self._sent_through = max(self._sent_through, row.slot)
            ref = row.occurrence.ref
            self._open.setdefault(ref, {})[row] = None
            near = self._near.get(ref)
            if near is not None and near.next is row:
                self._await_next(near, row.place)

    def closed(self, row: QueuedMessage[Fire]) -> None:
        """Notes the end of an occurrence. With its last open row a schedule is forgotten; memory would grow otherwise."""
        assert row.occurrence is not None
        ref = row.occurrence.ref
        self.refused.forget(row.place, ref)
        rows = self._open.get(ref, {})
        if row in rows:
            del rows[row]
            if not rows:
                del self._open[ref]

    def waiting(self, ref: str) -> QueuedMessage[Fire] | None:
        """Returns the row of the next fire, or of the end of a search; None if no fire is left or the record is far."""
        near = self._near.get(ref)
        return None if near is None else near.next

    def open_rows(self, ref: str) -> list[QueuedMessage[Fire]]:
        """Returns the rows of a schedule that were taken or wait, and are not closed."""
        waiting = self.waiting(ref)
        rows = [*self._open.get(ref, ()), *([] if waiting is None else [waiting])]
        return [row for row in rows if not row.stage.is_closed]

    @staticmethod
    def due(row: QueuedMessage[Fire], message: Message) -> int:
        """Returns when an occurrence became due."""
        # Its stored rows exist since the broker refused it: it was due by then, however old its instant.
        return max(message.nominal, message.slot - RETRY_FIRST_MS) if row.fire is None else row.fire.due

    def placed(self, ref: str) -> None:
        """Notes that the shard writer has placed the record; a record that stays near is checked again."""
        if ref in self._near:
            self._displaced[ref] = None

    def is_near(self, ref: str) -> bool:
        return ref in self._near

    def kept(self, ref: str) -> Recurring | None:
        """Returns the last known record of a near schedule."""
        near = self._near.get(ref)
        return None if near is None else near.record

    # -- outages of a present owner -----------------------------------------------------------------------------------

    @property
    def sent_through(self) -> int:
        """Slot after which no fire was sent; no stored or started checkpoint is after it."""
        return max(self._sent_through, self.promised[0])

    def outage_opens(self) -> None:
        """Lets overdue fires wait until the outage is known: one delivery then covers several of them."""
        self.messages.queue.late_fires_wait = True

    def gap_ends(self, instant: int) -> None:
        """Lets fires before the gap's end wait too: one that is taken during the write would move later fires out of the gap."""
        self.messages.queue.gap_end = instant

    def outage_ends(self, gaps: tuple[Outage, ...]) -> None:
        """Computes waiting fires in a gap again, so that each covers all misfires of its schedule.

        Schedules that a request holds are left out: the request may end within the gap, and its new interval counts from then on.
        """
        if gaps != self.messages.checkpoints.durable.gaps:
            self.messages.checkpoints.gaps_are(gaps)
            for ref, near in self._near.items():
                if ref not in self.messages.queue.held:
                    self._await_again(near)
        self.messages.queue.late_fires_wait, self.messages.queue.gap_end = False, 0
        self.messages.host.operations.raise_(self.messages.changed)

    def let_go(self, ref: str) -> None:
        """Ends a request's hold: the rest of the schedule goes on, with the present gaps."""
        self.messages.queue.held.discard(ref)
        if ref in self._near:
            self._await_again(self._near[ref])
        self.messages.host.operations.raise_(self.messages.changed)

    def _await_again(self, near: _Near) -> None:
        if near.series is None:
            return
        near.series = self.series_of(near.record, near.series.interval)
        row = near.next
        if row is None or row.stage is not Stage.READY:
            return
        before = (row.slot, "", "")
        if near.series.after(before) != row.fire:
            self.messages.close(row, Stage.GONE)
            self.messages.queue.discard(row)
            self._await_next(near, before)

    # -- placement of records -----------------------------------------------------------------------------------------

    def keep_placed(self) -> Operation[None]:
        """Lets the shard writer move out or remove records whose fires are complete and whose next fire is far or missing."""
        while True:
            yield from self.messages.host.sleep(PLACED_CHECK_MS, routine=True)
            for ref in list(self._displaced):
                near = self._near.get(ref)
                belongs = None if near is None else self.belongs(near.record, near.record.spans())
                if near is None or belongs is None or not belongs.is_near:
                    del self._displaced[ref]
                    if near is not None and self._place is not None:
                        self._place(ref, None)
                elif len(belongs.spans) == 1 and near.next is not None and not self._is_far(near.next.slot):
                    del self._displaced[ref]
                    if near.bound is not None:
                        self.messages.host.operations.start(self._search_on(ref))

    def belongs(self, record: Recurring, spans: Sequence[Interval]) -> Placement:
        """Returns where a record of these intervals belongs, by the stored position."""
        near = self._near.get(record.ref)
        searched = near.bound.slot if near is not None and near.bound is not None else 0
        generation = None if near is None else near.generation
        return belongs_of(
            [(span, self.series_of(record, span)) for span in spans],
            record,
            self.position,
            {} if generation is None else {generation: searched},
            self._far_from,
        )

    def _is_far(self, slot: int) -> bool:
        return slot > self._far_from

    @property
    def _far_from(self) -> int:
        """Instant after which fires are far."""
        host = self.messages.host
        return host.now + host.holding.recurring_near_ms

    # -- payloads -----------------------------------------------------------------------------------------------------

    def load(self, rows: Sequence[QueuedMessage[Fire]]) -> Operation[None]:
        """Sets the messages of fires."""
        yield from self._templates.load(rows)
