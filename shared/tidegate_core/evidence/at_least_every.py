"""Decides about reminders of `at_least_every`: a job at the latest so long after the last one ("100 GB, or every 4 h").

`shard/timer_rows.py` sets the reminders and turns a due one into a deadline of evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate_core.evidence.accumulator import EvidenceAccumulator
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.instants import Instant
from tidegate_core.rows import keys
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.jobs import waiting_job, write_ledger
from tidegate_core.shard.schedule_state import awaits_backlog_cut, fires, oldest_kept_generation, parks, spec_of
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.shard.timer_rows import (
    AT_LEAST,
    is_dealt_with,
    leave,
    take_again_if_forgotten,
)
from tidegate_core.writes.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class AtLeastEvery:
    """Decides about a reminder: present evidence becomes a job.

    Without evidence, or with a waiting job, no job is created.

    Attributes:
        through: Low watermark of the decision.
        unread: Topics that were not read in time, for the ledger.
        memory: Cache with deferred rows, low watermarks and waiting jobs.
    """

    row: TimerRow
    through: Instant = 0
    unread: tuple[str, ...] = ()
    memory: ShardCache | None = None
    stale: tuple[Key, ...] = ()
    name: str = "at_least_every"

    @property
    def about(self) -> str:
        return self.row.ref

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, schedule = self.row.ref.removesuffix(AT_LEAST).split("/", 1)
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, namespace, schedule))
        if state is None or not self._is_due(unit, state):
            unit.forget_row(self.row.key(unit.shard))
            return
        if unit.controls.covers(namespace):
            leave(unit, self.row, self.memory)
            return
        if take_again_if_forgotten(unit, self.row, self.through, self.memory):
            return
        spec = spec_of(unit, namespace, schedule, state.version)
        assert spec is not None
        gathering = EvidenceAccumulator(unit, state, spec, now, self.unread)
        if gathering.fold_all({}, self.row.at) is not None:
            gathering.close()
            unit.go_on()  # The row stays, so that a successor finds it as well.
            return
        unit.forget_row(self.row.key(unit.shard))
        # The search for an earlier deadline may end later; evidence that was over by then is gone.
        gathering.pass_time_through("", self.row.at)
        if gathering.made_at == state.made_at:  # Otherwise that created a job, from which the next reminder counts.
            self._decide(unit, gathering, state, spec, now)
        gathering.close()

    def _decide(
        self, unit: UnitOfWork, gathering: EvidenceAccumulator, state: ScheduleState, spec: ScheduleSpec, now: int
    ) -> None:
        held = gathering.stored("")
        if held is None:
            self._without_evidence(unit, gathering, state, spec, now)
        elif held.evidence.job:
            # The evidence already has a waiting job. Without a decision here, the reminder would delay later ones.
            gathering.reminded(self.row.at)
        else:
            gathering.fire_incomplete(held)

    def _is_due(self, unit: UnitOfWork, state: ScheduleState) -> bool:
        if not fires(state) or str(state.generation) != self.row.detail:
            return False  # The schedule has a new generation, and new reminders.
        if self.row.at < unit.controls.resumed_at(state.namespace):
            return False  # A scope suspension ended all work that was due before its resume.
        spec = spec_of(unit, state.namespace, state.name, state.version)
        assert spec is not None
        assert isinstance(spec.trigger, EventTrigger)
        every = spec.trigger.at_least_every
        return every is not None and not is_dealt_with(state, every, self.row.at)

    def _without_evidence(
        self, unit: UnitOfWork, gathering: EvidenceAccumulator, state: ScheduleState, spec: ScheduleSpec, now: int
    ) -> None:
        assert isinstance(spec.trigger, EventTrigger)
        missing = spec.trigger.shortfalls([0] * len(spec.trigger.leaves()))
        job = replace(waiting_job(state, spec, gathering.next_id(""), "events", now, now), missing=missing)
        if spec.trigger.allow_empty and self._has_waiting_job(unit, state):
            gathering.reminded(self.row.at)  # Otherwise each further job would run after the waiting one for nothing.
        elif spec.trigger.allow_empty:
            gathering.add_job(job)
        else:
            write_ledger(unit, job, "skipped", "nothing_new", now, "; ".join(job.missing))
            gathering.reminded(self.row.at)

    def _has_waiting_job(self, unit: UnitOfWork, state: ScheduleState) -> bool:
        """Returns whether a job of the schedule waits and continues.

        A requested job has moved the reminder already.

        During a hold each reminder creates a job, like each instant of a time trigger: its resume decides how many
        continue.
        """
        if self.memory is None or parks(state):
            return False
        known = (self.memory.jobs[job_id] for job_id in self.memory.waiting(self.about.removesuffix(AT_LEAST)))
        return any(
            job.trigger == "events"
            and job.generation >= oldest_kept_generation(state)
            and not awaits_backlog_cut(state, job)
            and not unit.drops(job.namespace, job.satisfied_at)
            for job in known
        )
