"""A time trigger's instant has come: the occurrence becomes a job, the cursor moves to the next instant (I1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate_core.decisions.run_plane.definitions import spec_of
from tidegate_core.decisions.run_plane.jobs import end_job, time_job
from tidegate_core.records.run_plane import ScheduleState, TimerRow
from tidegate_core.store import keys
from tidegate_core.store.values import Key
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.triggers.base import TimeTrigger

INSTANTS_PER_TRANSACTION = 8
"""Missed instants of one schedule made in one transaction; the rest follows at once through the next timer row."""


@dataclass(frozen=True, slots=True)
class FireSchedule:
    """Decides on a timer row of kind `S`. The row is a lower bound: the state's `next_nominal` is the truth."""

    row: TimerRow
    name: str = "fire"
    stale: tuple[Key, ...] = ()

    @property
    def about(self) -> str:
        return self.row.ref

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, schedule = self.row.ref.split("/", 1)
        key = keys.schedule_state(unit.shard, namespace, schedule)
        state = unit.record(ScheduleState, key)
        unit.forget_row(self.row.key(unit.shard))
        if state is None or state.status != "active" or state.next_nominal != self.row.at:
            return  # A row left behind by an update, suspend or delete.
        spec = spec_of(unit, namespace, schedule, state.version)
        assert spec is not None
        assert isinstance(spec.trigger, TimeTrigger)
        nominal: int | None = state.next_nominal
        made, last = 0, state.fired_through
        while nominal is not None and nominal <= now and made < INSTANTS_PER_TRANSACTION:
            # An instant before its activation, such as a past `at`, became due with that.
            due = max(nominal, state.activated_at)
            suspended_until = unit.controls.suspended_until(namespace, due, now)
            if suspended_until is not None:
                nominal = spec.trigger.next_after(suspended_until, self.row.ref)
                continue
            job = time_job(unit.shard, state, spec, nominal, now)
            unit.put_new(job, job.key(unit.shard))
            if unit.controls.has_dropped(namespace, due):
                # It was due before the suspend, and it is too late for it now: that is told, never silent (I1).
                end_job(unit, job, "cancelled", "suspended", now)
            last = max(last, nominal)
            # From the last scheduled instant and never from now: a late poll must not lose one.
            nominal = spec.trigger.next_after(nominal, self.row.ref)
            made += 1
        unit.put(replace(state, next_nominal=nominal, fired_through=last), key)
        if nominal is not None:
            row = TimerRow(at=nominal, kind="S", ref=self.row.ref)
            unit.set_row(row, row.key(unit.shard))
