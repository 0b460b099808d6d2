"""An instant of a composite's time leaves has come: it latches them, and the cursor moves on, in one transaction (SEMANTICS 6.5).

A tick is judged as an event is that was appended then: it waits until all that came before it was counted (`watermark.py`),
and whoever counts something later first takes the ticks before that. So downtime does not change what meets.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.evidence.tick_instances import gathering_of
from tidegate_core.rows import keys
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.timer import TimerRow
from tidegate_core.shard.schedule_state import fires
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.shard.spec_cache import spec_of
from tidegate_core.shard.timer_rows import NEXT_TICK, leave, take_again_if_forgotten
from tidegate_core.writes.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class LatchTicks:
    """Decides on the row of a schedule's next tick; the state's `next_tick` is the truth.

    Attributes:
        through: All that was appended by then is counted.
        unread: What was not read in time, for the ledger.
        memory: Keeps what waits for the end of a wide suspend, and knows what is counted.
    """

    row: TimerRow
    through: int
    unread: tuple[str, ...] = ()
    memory: ShardCache | None = None
    stale: tuple[Key, ...] = ()
    name: str = "latch"

    @property
    def about(self) -> str:
        return self.row.ref

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, schedule = self.row.ref.removesuffix(NEXT_TICK).split("/", 1)
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, namespace, schedule))
        if state is None or not fires(state) or state.next_tick != self.row.at:
            unit.forget_row(self.row.key(unit.shard))
            return  # A row left behind by an update, a suspend or a delete, or by what was counted since.
        if unit.controls.covers(namespace):
            leave(unit, self.row, self.memory)
            return
        if take_again_if_forgotten(unit, self.row, self.through, self.memory):
            return
        unit.forget_row(self.row.key(unit.shard))
        spec = spec_of(unit, namespace, schedule, state.version)
        assert spec is not None
        gathering = gathering_of(unit, state, spec, now, self.unread)
        gathering.fold_all({}, self.through)
        gathering.close()
