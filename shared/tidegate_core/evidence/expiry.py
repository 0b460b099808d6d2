"""Decisions about deadlines of evidence and about ticks, once the low watermark has passed them.

An outage must not change results: append times decide. So a decision waits for the low watermark (`watermark.py`),
and is queued after the counting of all inbox rows. A tick counts like an event that was appended at its instant: a
decision that counts something later takes the earlier ticks first.
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
    """Returns the decision about a timer row of kind `EVIDENCE_TIMER`.

    Args:
        row: Due timer row.
        unread: Topics that were not read in time, for the ledger.
        through: Low watermark: every event by then is counted, except for `unread`.
        memory: Cache of the shard.
    """
    if row.ref.endswith(NEXT_TICK):
        return LatchTicks(row, through, unread, memory)
    kind = AtLeastEvery if row.ref.endswith(AT_LEAST) else ExpireEvidence
    return kind(row, through, unread, memory)


@dataclass(frozen=True, slots=True)
class ExpireEvidence:
    """Decides about a deadline of one group's evidence; the automaton determines the outcome.

    Attributes:
        through: Low watermark of the decision.
        unread: Topics that were not read in time, for the ledger.
        memory: Cache that knows whether the watermark is still valid.
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
            unit.go_on()  # The row stays, so that a successor finds it as well.
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
            return False  # The request with the new generation is ending pending work.
        if unit.controls.covers(state.namespace):
            return False  # The scope suspension is ending it.
        if unit.drops(state.namespace, evidence.first_at):
            return False  # The suspension is over and is still ending it.
        # Its clock is or was stopped: the resume writes another timer row.
        return present_evidence(state, evidence, now).deadline == evidence.deadline


@dataclass(frozen=True, slots=True)
class LatchTicks:
    """Decides about a schedule's next tick; `next_tick` of the state decides.

    One transaction latches the leaves and moves the cursor.

    Attributes:
        through: Low watermark of the decision.
        unread: Topics that were not read in time, for the ledger.
        memory: Cache with deferred rows and low watermarks.
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
            return  # The row is outdated after an update, suspend or delete, or because a later count took the tick.
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
