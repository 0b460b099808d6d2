"""Decisions that write rows of an active schedule that the store has lost: timer rows, rows of a recurring message, subscriptions.

The sweeps call them (`repair_sweep.py`). A schedule's state and its rows move in one transaction. If one is there without the other, the cause
is a bug, a restore of a part of the store, or a change by hand. The rows follow from the state, so the present owner writes them again, and
each leaves a notice in the log. Not restored: definitions, and fires of a recurring message that fell due while its record was lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.commands.schedule_commands import first_nominal
from tidegate_core.engine.decision import Procedure
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.messages.recurring.recurring_change import (
    consume,
    opened_interval,
    record_of,
    wake_row_of,
    write_record,
)
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Notice, Read
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.recurring_message import Recurring
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.events.subscriptions import heard_leaves, listen_again, missing_rows
from tidegate_core.shard.schedule_state import fires, parsed
from tidegate_core.shard.timer_rows import nominal_row, tick_row
from tidegate_core.writes.unit_of_work import UnitOfWork


def timer_rows_of(state: ScheduleState) -> list[TimerRow]:
    """Returns all timer rows that a schedule's state names."""
    ref = keys.schedule_ref(state.namespace, state.name)
    until = None if state.until is None else TimerRow(at=state.until, kind=keys.RESUME_TIMER, ref=ref)
    return [row for row in (nominal_row(state), tick_row(state), until) if row is not None]


@dataclass(frozen=True, slots=True)
class RestoreTimers:
    """Writes the timer rows that a schedule's present state names and that are missing.

    Attributes:
        ref: The schedule.
        stale: Rows that the sweep did not find; the decision reads them again.
    """

    ref: str
    stale: tuple[Key, ...] = ()
    name: str = "rearm"

    @property
    def about(self) -> str:
        return self.ref

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, name = self.ref.split("/", 1)
        key = keys.schedule_state(unit.shard, namespace, name)
        state = unit.record(ScheduleState, key)
        if state is None:
            return
        rows = timer_rows_of(state)
        there = unit.items([row.key(unit.shard) for row in rows])
        missing = [row for row, item in zip(rows, there, strict=True) if item is None]
        for row in missing:
            unit.set_row(row, row.key(unit.shard))
            unit.after(Notice("timer_row_missing", {"schedule": self.ref, "kind": row.kind, "at": row.at}))
        if missing:
            unit.put(
                state, key
            )  # Raises the state's revision: a late repeat of this write must not write a row of the past.


def wake_rows_of(record: Recurring, shard: int) -> list[Key]:
    """Returns the key of the wake row that a far record needs; none for a record whose next fire is near."""
    return [] if record.summons is None else [wake_row_of(record, record.summons).key(shard)]


@dataclass(frozen=True, slots=True)
class RestoreRecurring:
    """Writes the missing record, or wake row, of an active schedule that sends messages.

    The owner writes the record as it has it in memory. After a take-over no memory has it: the record then begins now. Fires that fell due
    before are not sent, because no row tells which of them were sent already.

    Attributes:
        ref: The schedule.
        source: Recurring messages of the shard.
        stale: Rows that the sweep did not find; the decision reads them again.
    """

    ref: str
    source: RecurringQueue
    stale: tuple[Key, ...] = ()
    name: str = "mend_recurring"

    @property
    def about(self) -> str:
        return self.ref

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, name = self.ref.split("/", 1)
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, namespace, name))
        if state is None or state.status != "active":
            return
        record = record_of(unit, namespace, name)
        if record.is_open_for(state.generation):
            self._write_wake_row(unit, record)
        else:
            self._open(unit, state, record, now)

    def _write_wake_row(self, unit: UnitOfWork, record: Recurring) -> None:
        for key in wake_rows_of(record, unit.shard):
            if unit.item(key) is None:
                assert record.summons is not None
                unit.set_row(wake_row_of(record, record.summons), key)
                consume(unit, record.namespace, record.name)
                unit.after(Notice("recurring_row_missing", {"schedule": self.ref, "row": "D", "at": record.summons}))

    def _open(self, unit: UnitOfWork, state: ScheduleState, record: Recurring, now: int) -> None:
        key = keys.definition(unit.shard, state.namespace, state.name, state.version)
        definition = unit.record(Definition, key)
        if definition is None:
            return
        spans = [span for span in record.spans() if not span.is_open]
        kept = self.source.kept(self.ref)
        if kept is not None and kept.is_open_for(state.generation):
            spans = kept.spans()
        else:
            since = self.source.messages.checkpoints.slot_for(now)
            first = first_nominal(parsed(definition.spec), self.ref, state, since, resumed=True).at
            if first is None:
                return  # The schedule has no further fire.
            spans.append(opened_interval(state, definition, since, first))
        if write_record(unit, self.source, record, spans):
            consume(unit, state.namespace, state.name)
            unit.after(Notice("recurring_row_missing", {"schedule": self.ref, "row": "C", "at": now}))


@dataclass(frozen=True, slots=True)
class RestoreSubscriptions(Procedure):
    """Writes the missing subscriptions of a schedule.

    It checks again, as a procedure of the shard writer: no request of the schedule runs concurrently. A former owner may still write rows of an ended
    generation. Such rows are inert, like the rows of a request that was refused.
    """

    ref: str
    name: str = "relisten"

    @property
    def about(self) -> str:
        return self.ref

    def run(self, writer: ShardWriter) -> Operation[None]:
        namespace, name = self.ref.split("/", 1)
        found = yield from writer.host.read_for_good(Read((keys.schedule_state(writer.shard, namespace, name),)))
        assert isinstance(found, Items)
        for item in found.found.values():
            state = from_item(ScheduleState, item)
            if fires(state):
                yield from self._relisten(writer, state)

    def _relisten(self, writer: ShardWriter, state: ScheduleState) -> Operation[None]:
        key = keys.definition(writer.shard, state.namespace, state.name, state.version)
        found = yield from writer.host.read_for_good(Read((key,)))
        assert isinstance(found, Items)
        for item in found.found.values():
            rows = yield from missing_rows(writer, state, heard_leaves(parsed(from_item(Definition, item).spec)))
            if not rows:
                continue
            yield from listen_again(writer, rows)
            for row in rows:
                writer.host.note("index_row_missing", schedule=self.ref, event_key=row.event_key, leaf=row.leaf)
