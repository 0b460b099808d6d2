"""Writes the records of recurring messages in the shard writer: for a request, and to move a record near or far.

A request first holds the schedule: no further fire is taken, and fires in delivery may end. Then one transaction moves the state
and the record. Fires that are not acknowledged by then lie after the boundary and are never sent again. So a broker that is away
delays the shard writer only for a few seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.messages.recurring.fire_series import Fire, FireSeries
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.messages.wire.due_queue import QueuedMessage, Stage
from tidegate_core.messages.wire.message_record import WIRE_PATIENCE_MS, not_sent
from tidegate_core.messages.wire.timer_window import place_of
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.recurring_message import Interval, Recurring, WakeRow, series_id
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.writes.unit_of_work import NotAtHand, UnitOfWork

WIRE_CHECK_MS: Final = 10
MISSED_TOLD_MAX: Final = 1_000
"""Misfires that are counted: some 50 ms of the shard writer, once."""


def record_of(unit: UnitOfWork, namespace: str, name: str) -> Recurring:
    """Returns the near or far record of a schedule, or an empty record."""
    near, far = keys.recurring_of(unit.shard, namespace, name)
    unit.items([near, far])
    found = unit.record(Recurring, near) or unit.record(Recurring, far)
    return found or Recurring(namespace=namespace, name=name)


def write_record(unit: UnitOfWork, source: RecurringQueue, before: Recurring, spans: list[Interval]) -> bool:
    """Writes the record at the key where it belongs, and removes it from the other; returns False if nothing changes.

    The revision of a record starts again each time the record returns to a key. So the same transaction must write the schedule's
    state, whose revision only grows: otherwise a late repeat of the transaction could move or remove a later record.
    """
    near, far = keys.recurring_of(unit.shard, before.namespace, before.name)
    belongs = source.belongs(before, spans)
    is_stored_near = unit.item(near) is not None
    first = None if belongs.is_near or belongs.first is None else belongs.first.slot
    record = before.with_spans(belongs.spans, first)
    if record == before and is_stored_near == belongs.is_near:
        return False
    if before.summons is not None:
        unit.forget_row(wake_row_of(before, before.summons).key(unit.shard))
    if not belongs.spans:
        unit.delete(near)
        unit.delete(far)
    elif belongs.is_near:
        unit.put(record, near)
        unit.delete(far)
    else:
        if first is not None:
            summons = wake_row_of(before, first)
            unit.set_row(summons, summons.key(unit.shard))
        unit.put(record, far)
        unit.delete(near)
    return True


def consume(unit: UnitOfWork, namespace: str, name: str) -> None:
    """Writes the schedule's state unchanged, so the store refuses a repeat of the transaction."""
    key = keys.schedule_state(unit.shard, namespace, name)
    state = unit.record(ScheduleState, key)
    if state is not None:
        unit.put(state, key)


def wake_row_of(record: Recurring, slot: int) -> WakeRow:
    """Returns the wake row of a far record."""
    namespace, name = record.namespace, record.name
    return WakeRow(slot=slot, id=series_id(namespace, name), namespace=namespace, name=name)


def opened_interval(state: ScheduleState, definition: Definition, begin: int, first: int) -> Interval:
    """Returns a new open interval of a schedule.

    Args:
        state: State whose generation the interval gets.
        definition: Definition of the state's version.
        begin: Least slot of a fire.
        first: First nominal time.
    """
    spec = ScheduleSpec.from_canonical(definition.spec)
    return Interval(
        generation=state.generation,
        version=state.version,
        incarnation=state.incarnation,
        origin=state.position,
        begin=begin,
        since=first,
        trigger=spec.trigger.canonical_json(),
        size=len(spec.message.payload_bytes),
        catch_up=spec.catchup.mode,
    )


@dataclass(frozen=True, slots=True)
class PlaceRecord:
    """Decides whether a schedule's record is now near, far, or not needed.

    Attributes:
        summons: Wake row that asked for the decision; the decision removes it.
    """

    ref: str
    source: RecurringQueue
    summons: Key | None = None
    name: str = "recurring"

    @property
    def about(self) -> str:
        return self.ref

    @property
    def stale(self) -> tuple[Key, ...]:
        """Keys to read again: if an earlier decision for the wake row failed, the record may be readable now."""
        if self.summons is None or self.source.summoned.asked_anew(self.summons) is None:
            return ()
        return keys.recurring_of(self.source.messages.shard, *self.ref.split("/", 1))

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, name = self.ref.split("/", 1)
        record = record_of(unit, namespace, name)
        spans, summons = record.spans(), self.summons
        # The record may have come near since, with the end of a search as its next fire: the queue has to search on.
        unit.after(lambda: self.source.placed(self.ref))
        if summons is not None:
            unit.forget_row(summons)
            unit.after(lambda: self.source.summoned.answered(summons))
            begin = self.source.summoned.asked_anew(summons)
            if begin is not None and record.summons == place_of(summons.sk)[0]:
                spans = [self._made_up_for(unit, record, span, begin) if span.is_open else span for span in spans]
        if write_record(unit, self.source, record, spans) or summons is not None:
            consume(unit, namespace, name)

    def _made_up_for(self, unit: UnitOfWork, record: Recurring, span: Interval, begin: int) -> Interval:
        """Returns the interval from which fires that came due without a readable record are made up for.

        The position has passed these fires, and they were never sent. The last of them is sent now, unless the schedule leaves
        out misfires. Log events report the others.
        """
        series = FireSeries(record.namespace, record.name, span)  # Without gaps, so each instant is reported.
        missed: list[Fire] = []
        fire = series.after((record.summons or 0, "", ""))
        while fire is not None and not fire.is_bound and fire.slot < begin and len(missed) < MISSED_TOLD_MAX:
            missed.append(fire)
            fire = series.after(fire.place)
        last = series.last_before(begin)
        if last is None or last < (record.summons or 0):
            return span
        passed = [each.nominal for each in missed if each.place <= self.source.promised]
        told = passed if span.catch_up == "none" else [each.nominal for each in missed if each.nominal != last]
        if told:
            host = self.source.messages.host
            unit.after(lambda: not_sent(host, self.ref, "outage", len(told), told[0], told[-1]))
        return span if span.catch_up == "none" else replace(span, begin=begin, since=last)


class RecurringChange:
    """Changes a schedule that sends or sent messages, for one request.

    Attributes:
        since: First slot of the interval that the request opens: the present, and after all places that a checkpoint may cover.
    """

    def __init__(self, source: RecurringQueue, writer: ShardWriter, namespace: str, name: str) -> None:
        self.since = source.messages.checkpoints.slot_for(writer.host.now)
        self._source = source
        self._queue = source.messages.queue
        self._writer = writer
        self._namespace = namespace
        self._name = name
        self.ref = keys.schedule_ref(namespace, name)
        self._mark = QueuedMessage(self.since, "", "", "", 0, Stage.WRITING)

    def begin(self) -> Operation[None]:
        """Holds the schedule, and waits for its fires in delivery.

        Raises:
            WriterClosed: The shard is handed over; the successor applies the request.
        """
        self._queue.held.add(self.ref)
        self._hold_position()
        give_up = self._writer.host.now + WIRE_PATIENCE_MS
        while self._writer.host.now < give_up and any(row.stage is Stage.SENDING for row in self._rows()):
            yield from self._writer.yield_turn()
            yield from self._writer.host.sleep(WIRE_CHECK_MS)
        yield from self._source.messages.next_attempts.learn_all(self._writer.yield_turn)
        yield from self._writer.fetch(
            NotAtHand(keys=keys.recurring_of(self._writer.shard, self._namespace, self._name))
        )

    def _hold_position(self) -> None:
        """Keeps checkpoints before the slot that the request will open, however long its write takes."""
        self._queue.hold(self._mark)

    def end(self) -> None:
        """Ends the hold: the rest of the schedule goes on."""
        self._queue.end_hold(self._mark)
        self._source.let_go(self.ref)

    def caught_up(self, before: ScheduleState | None) -> ScheduleState | None:
        """Returns the state with the last nominal time that was fired: an `at` that has fired never fires again.

        A refused fire counts as fired: it has its own rows, which end with its version.
        """
        if before is None:
            return None
        record = self._stored()
        boundary = self._boundary(record)
        sent = [self._source.series_of(record, span).last_before(boundary) for span in record.spans() if span.is_open]
        return replace(before, fired_through=max(before.fired_through, *(each or 0 for each in sent), 0))

    def write(self, unit: UnitOfWork, state: ScheduleState, first: int | None) -> tuple[str | None, int]:
        """Ends the open interval, and opens one for the new state.

        Args:
            unit: Unit of work of the transaction that moves the state.
            state: State after the request.
            first: First nominal time of the new interval; None opens none.

        Returns:
            The text of the ended interval, and the number of its occurrences that were due and are withdrawn.
        """
        record = record_of(unit, self._namespace, self._name)
        boundary = self._boundary(record)
        open_before = [span.closed(boundary, self.since) for span in record.spans() if span.is_open]
        spans = [*(span for span in record.spans() if not span.is_open), *open_before]
        if first is not None:
            definition = unit.record(
                Definition, keys.definition(unit.shard, state.namespace, state.name, state.version)
            )
            assert definition is not None
            spans.append(opened_interval(state, definition, self.since, first))
        write_record(unit, self._source, record, spans)
        unit.after(lambda: self._source.ended.end(self.ref, state.generation - 1))
        withdrawn = sum(self._withdrawn(record, span) for span in open_before)
        return open_before[-1].text() if open_before else None, withdrawn

    def _boundary(self, record: Recurring) -> int:
        """Returns the slot before which all fires of the open interval are acknowledged or have rows of a next attempt.

        No fire at or after it is sent again. An interval that an earlier request has ended keeps its own boundary.
        """
        is_open = {span.generation for span in record.spans() if span.is_open}
        fires = ((row.slot, row.fire) for row in self._rows())
        waiting = [slot for slot, fire in fires if fire is not None and fire.interval.generation in is_open]
        if not self._source.is_near(self.ref):
            source = self._source
            following = (
                source.series_of(record, span).after(source.taken_through(record, span, source.promised))
                for span in record.spans()
                if span.is_open
            )
            waiting += [fire.slot for fire in following if fire is not None]
        # No checkpoint has passed a waiting fire. The position may be within its slot, after another message of that instant.
        return min([*waiting, self.since])

    def _withdrawn(self, record: Recurring, ended: Interval) -> int:
        """Returns how many occurrences of the interval were due and neither acknowledged nor dead-lettered, for the receipt.

        These are taken fires, next attempts of refused fires, and due fires after the last one that was taken.
        """
        source, generation = self._source, ended.generation
        waiting = source.waiting(self.ref)
        taken = [
            row.occurrence.covered
            for row in self._rows()
            if row is not waiting
            and row.fire is not None
            and row.occurrence is not None
            and row.occurrence.generation == generation
        ]
        again = source.refused.waiting_of(self.ref, generation)
        series = source.series_of(record, ended)
        if waiting is not None and waiting.stage.is_closed:
            due = []
        elif waiting is not None:
            due = [fire.count for fire in series.cancelled((waiting.slot, "", ""))]
        elif source.is_near(self.ref):
            due = []
        else:
            due = [fire.count for fire in series.cancelled(source.taken_through(record, ended, source.promised))]
        return sum(taken) + again + sum(due)

    def _rows(self) -> list[QueuedMessage[Fire]]:
        return self._source.open_rows(self.ref)

    def _stored(self) -> Recurring:
        found = [
            self._writer.view.item(key) for key in keys.recurring_of(self._writer.shard, self._namespace, self._name)
        ]
        items = [item for item in found if item is not None]
        return from_item(Recurring, items[0]) if items else Recurring(namespace=self._namespace, name=self._name)
