"""A recurring message whose record, or the row that brings it near, is gone from the store is sent again."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.commands.schedule_commands import first_nominal
from tidegate_core.messages.recurring.recurring_change import (
    consume,
    opened_interval,
    record_of,
    wake_row_of,
    write_record,
)
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Notice
from tidegate_core.rows.recurring_message import Recurring
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.shard.schedule_state import parsed
from tidegate_core.writes.unit_of_work import UnitOfWork


def gone_of(record: Recurring, shard: int) -> list[Key]:
    """Returns the row that has to be there to bring a far record near, if there is to be one."""
    return [] if record.summons is None else [wake_row_of(record, record.summons).key(shard)]


@dataclass(frozen=True, slots=True)
class RestoreRecurring:
    """Writes what is not there of an active schedule that sends messages, and says so.

    The owner's own memory has the record as it was. After a take-over nobody has: then what comes from now on is sent, and what fell due
    meanwhile is not, because nobody can tell what of it was.

    Attributes:
        stale: Rows that a look did not find: what is remembered of them is not believed.
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
            self._summon(unit, record)
        else:
            self._open(unit, state, record, now)

    def _summon(self, unit: UnitOfWork, record: Recurring) -> None:
        for key in gone_of(record, unit.shard):
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
                return  # It has sent all that it ever will.
            spans.append(opened_interval(state, definition, since, first))
        if write_record(unit, self.source, record, spans):
            consume(unit, state.namespace, state.name)
            unit.after(Notice("recurring_row_missing", {"schedule": self.ref, "row": "C", "at": now}))
