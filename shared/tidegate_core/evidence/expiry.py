"""A deadline of evidence has come, once nothing that could prevent it is uncounted (SEMANTICS 5.6, 6.2, 6.6).

Downtime must not change results: evidence is judged by append times, so the decision waits for what may have come in time
(`watermark.py`), and is queued behind the counting of all that lies in the inbox then.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.engine.decision import Decision
from tidegate_core.evidence.at_least_every import AtLeastEvery
from tidegate_core.evidence.tick_instances import gathering_of
from tidegate_core.language.values.instants import Instant
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.schedule_state import fires, is_of_ended_generation, keeps_pending, present_evidence, spec_of
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.shard.timer_rows import AT_LEAST, NEXT_TICK, leave, take_again_if_forgotten
from tidegate_core.writes.unit_of_work import UnitOfWork


def deadline_decision(row: TimerRow, unread: tuple[str, ...], through: Instant, memory: ShardCache) -> Decision:
    """Returns what decides on a timer row of kind `E`.

    Args:
        row: It is due.
        unread: What was not read in time, for the ledger.
        through: All that was appended by then, and is not named in `unread`, is counted.
        memory: Of the shard.
    """
    if row.ref.endswith(NEXT_TICK):
        return LatchTicks(row, through, unread, memory)
    kind = AtLeastEvery if row.ref.endswith(AT_LEAST) else ExpireEvidence
    return kind(row, through, unread, memory)


@dataclass(frozen=True, slots=True)
class ExpireEvidence:
    """Decides on a deadline of one group's evidence. What becomes of it is the automaton's to say.

    Attributes:
        through: All that was appended by then is counted.
        unread: What was not read in time, for the ledger.
        memory: Knows whether that is so still.
    """

    row: TimerRow
    through: Instant = 0
    unread: tuple[str, ...] = ()
    memory: ShardCache | None = None
    stale: tuple[Key, ...] = ()
    name: str = "expire"

    @property
    def about(self) -> str:
        return self.row.ref

    def decide(self, unit: UnitOfWork, now: int) -> None:
        ref, _ = self.row.ref.rsplit("#", 1)
        namespace, schedule = ref.split("/", 1)
        group = self.row.detail or ""
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, namespace, schedule))
        evidence = unit.record(Evidence, keys.evidence(unit.shard, namespace, schedule, group))
        if state is None or evidence is None or not self._is_due(unit, state, evidence, now):
            unit.forget_row(self.row.key(unit.shard))
            return
        if take_again_if_forgotten(unit, self.row, self.through, self.memory):
            return
        spec = spec_of(unit, namespace, schedule, state.version)
        assert spec is not None
        gathering = gathering_of(unit, state, spec, now, self.unread)
        if gathering.fold_all({}, self.row.at) is not None:
            gathering.close()
            unit.go_on()  # The row stays: a successor has to find it as well.
            return
        unit.forget_row(self.row.key(unit.shard))
        held = gathering.stored(group)
        if held is not None and held.evidence.deadline == self.row.at:  # A tick before it may have moved it.
            gathering.pass_time(held)
        gathering.close()

    def _is_due(self, unit: UnitOfWork, state: ScheduleState, evidence: Evidence, now: int) -> bool:
        if evidence.job or evidence.deadline != self.row.at:
            return False
        if not keeps_pending(state) or is_of_ended_generation(state, evidence):
            return False  # The request that has moved the schedule on is ending what is pending.
        if unit.controls.covers(state.namespace):
            return False  # So is the wide suspend.
        if unit.drops(state.namespace, evidence.first_at):
            return False  # So it is still, though it is over.
        # Its clock stands still, or has stood still: the resume sets it going with a row of its own.
        return present_evidence(state, evidence, now).deadline == evidence.deadline


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
