"""Writes to the records of recurring messages, all in the shard's lane: by a request, and to bring one near or move it out.

A request first holds the schedule: nothing more of it is taken, and what is with the broker's client may come to its end. Then
its state and its record move in one transaction. What was not acknowledged by then lies behind the boundary, and is never
sent again; so a broker that is away holds up the lane for a few seconds and no longer.
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
"""Fires that were missed, and are counted: some 50 ms of the lane, once."""


def record_of(unit: UnitOfWork, namespace: str, name: str) -> Recurring:
    """Returns the record, wherever it lies; an empty one where there is none."""
    near, far = keys.recurring_of(unit.shard, namespace, name)
    unit.items([near, far])
    found = unit.record(Recurring, near) or unit.record(Recurring, far)
    return found or Recurring(namespace=namespace, name=name)


def write_record(unit: UnitOfWork, source: RecurringQueue, before: Recurring, spans: list[Interval]) -> bool:
    """Writes the record where it belongs, and removes it from where it was; False when it is there as it should be.

    Its own revision begins anew whenever it comes back to a place, so the same transaction has to write the schedule's state,
    whose revision never does: else a send of it that arrives twice would move, or remove, a later record.
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
    """Writes the schedule's state as it is: whatever goes with it is refused when it is sent again."""
    key = keys.schedule_state(unit.shard, namespace, name)
    state = unit.record(ScheduleState, key)
    if state is not None:
        unit.put(state, key)


def wake_row_of(record: Recurring, slot: int) -> WakeRow:
    """Returns the row that brings a far record near."""
    namespace, name = record.namespace, record.name
    return WakeRow(slot=slot, id=series_id(namespace, name), namespace=namespace, name=name)


def opened_interval(state: ScheduleState, definition: Definition, begin: int, first: int) -> Interval:
    """Returns the interval of a schedule that counts from here on.

    Args:
        state: Of the generation that it is of.
        definition: Of the state's version.
        begin: No fire has an earlier slot.
        first: First nominal.
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
    """Decides where a schedule's record belongs by now: near, far, or nowhere.

    Attributes:
        summons: The row that asked for it; whatever it announced, it is dealt with.
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
        """Of one that could not be dealt with before the record is read anew: it may be readable by now."""
        if self.summons is None or self.source.summoned.asked_anew(self.summons) is None:
            return ()
        return keys.recurring_of(self.source.messages.shard, *self.ref.split("/", 1))

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, name = self.ref.split("/", 1)
        record = record_of(unit, namespace, name)
        spans, summons = record.spans(), self.summons
        # It may have come near since it was asked for, how far was searched standing for its next fire: somebody has to search on.
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
        """What came due while nobody could deal with the record lies behind the position, and was never sent: the last of it comes now,
        unless the schedule leaves out what was missed; those before it are told.
        """
        series = FireSeries(record.namespace, record.name, span)  # Without gaps: each instant is told of by itself.
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
    """What a request does to a schedule that sends messages, or did.

    Attributes:
        since: What the request opens counts from here on: the present, and behind all that a checkpoint may come to cover.
    """

    def __init__(self, source: RecurringQueue, lane: ShardWriter, namespace: str, name: str) -> None:
        self.since = source.messages.checkpoints.slot_for(lane.host.now)
        self._source = source
        self._slots = source.messages.slots
        self._lane = lane
        self._namespace = namespace
        self._name = name
        self.ref = keys.schedule_ref(namespace, name)
        self._mark = QueuedMessage(self.since, "", "", "", 0, Stage.WRITING)

    def begin(self) -> Operation[None]:
        """Holds the schedule, and waits for what is on the wire.

        Raises:
            Closed: The shard is handed over; the request is the successor's.
        """
        self._slots.held.add(self.ref)
        self._hold_position()
        give_up = self._lane.host.now + WIRE_PATIENCE_MS
        while self._lane.host.now < give_up and any(row.stage is Stage.SENDING for row in self._rows()):
            yield from self._lane.yield_turn()
            yield from self._lane.host.sleep(WIRE_CHECK_MS)
        yield from self._source.messages.next_attempts.learn_all(self._lane.yield_turn)
        yield from self._lane.fetch(NotAtHand(keys=keys.recurring_of(self._lane.shard, self._namespace, self._name)))

    def _hold_position(self) -> None:
        """No checkpoint passes what the request will open, however long that takes to be written."""
        self._slots.hold(self._mark)

    def end(self) -> None:
        """What is left of the schedule goes on."""
        self._slots.let_go(self._mark)
        self._source.let_go(self.ref)

    def caught_up(self, before: ScheduleState | None) -> ScheduleState | None:
        """Returns the state with what was made in it: an `at` that was is never made again.

        So too when the broker refused it: it has left its place for rows of its own, which end with its version.
        """
        if before is None:
            return None
        record = self._stored()
        boundary = self._boundary(record)
        sent = [self._source.series_of(record, span).last_before(boundary) for span in record.spans() if span.is_open]
        return replace(before, fired_through=max(before.fired_through, *(each or 0 for each in sent), 0))

    def write(self, unit: UnitOfWork, state: ScheduleState, first: int | None) -> tuple[str | None, int]:
        """Ends the open interval, and opens one for what the state says.

        Args:
            unit: Of the transaction that moves the state.
            state: As it is after the request.
            first: First nominal of what is opened; None opens nothing.

        Returns:
            The text of the interval that has ended, and how many of its occurrences were due and are not sent any more.
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
        """Returns the slot before which all of what is open was acknowledged, or has rows after a refusal; nothing behind it is sent again.

        What an earlier request has ended has its own, however long it takes to come to its end.
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
        # No checkpoint has passed what waits. It may stand within that slot all the same, behind something else of the same instant.
        return min([*waiting, self.since])

    def _withdrawn(self, record: Recurring, ended: Interval) -> int:
        """Returns how many occurrences of the interval were due, and neither acknowledged nor dead letters: the receipt says so.

        Taken fires, next attempts of refused ones, and what was due behind the last that was taken.
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

    def _rows(self) -> list[QueuedMessage]:
        return self._source.open_rows(self.ref)

    def _stored(self) -> Recurring:
        found = [self._lane.view.item(key) for key in keys.recurring_of(self._lane.shard, self._namespace, self._name)]
        items = [item for item in found if item is not None]
        return from_item(Recurring, items[0]) if items else Recurring(namespace=self._namespace, name=self._name)
