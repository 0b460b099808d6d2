"""A job at the latest so long after the last one, with what is there (SEMANTICS 5.6: "100 GB, or every 4 h").

The schedule's next reminder is its state's `next_nominal`, moved by every job that it makes, and by those that are asked for. A reminder that has come is
handed on as a deadline of evidence, because that waits for all that was appended before it: downtime must not change what a
job is told.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.rows import keys
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.timer import TimerRow
from tidegate_core.shard.timer_rows import (
    job_made,
    move_rows,
    pending_reminder,
)
from tidegate_core.writes.unit_of_work import UnitOfWork

AT_LEAST = "#at-least"
"""End of such a row's `ref`; the hash of a group's key has no hyphen."""


def remind(unit: UnitOfWork, state: ScheduleState, trigger: EventTrigger, now: int) -> None:
    """The reminder has come: it is put behind all that could still be counted before it, and the next one is set.

    Of those that lay before a wide resume nothing is made; the next one is the first behind it at their pace.
    """
    every = trigger.at_least_every
    following = None if every is None else now + every
    resumed_at, ref = unit.controls.resumed_at(state.namespace), keys.schedule_ref(state.namespace, state.name)
    if every is not None and state.next_nominal is not None and state.next_nominal < resumed_at:
        behind = replace(state, next_nominal=resumed_at + (state.next_nominal - resumed_at) % every)
        unit.put(behind, state.key(unit.shard))
        move_rows(unit, state, behind)
        return
    pending = None if every is None else pending_reminder(state, every, resumed_at)
    unit.put(replace(state, next_nominal=following, reminder=pending), state.key(unit.shard))
    if following is None or state.next_nominal is None:
        return
    for row in (
        TimerRow(at=following, kind="S", ref=ref),
        TimerRow(at=state.next_nominal, kind="E", ref=f"{ref}{AT_LEAST}", detail=str(state.generation)),
    ):
        unit.set_row(row, row.key(unit.shard))


def remind_anew(unit: UnitOfWork, state: ScheduleState, trigger: EventTrigger, now: int) -> None:
    """A run was asked for by hand: any run counts, so the next reminder is moved as by a job of the schedule's own."""
    if trigger.at_least_every is None:
        return
    after = job_made(state, trigger.at_least_every, now)
    unit.put(after, after.key(unit.shard))
    move_rows(unit, state, after)
