"""Timer rows of a schedule's state, reminders of `at_least_every` included.

A row stands where the state says, so one transaction moves both. The next reminder is `next_nominal` of the state;
every job of the schedule moves it, a requested job too. A due reminder becomes a deadline of evidence, because that
waits for the low watermark: an outage must not change what a job contains.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tidegate_core.language.triggers.search import Search
from tidegate_core.language.triggers.trigger import EventTrigger, TimeTrigger
from tidegate_core.language.values.durations import Duration
from tidegate_core.language.values.instants import Instant
from tidegate_core.rows import keys
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.schema_version import BOUNDS
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.unit_of_work import UnitOfWork

NEXT_TICK = "#next-tick"
"""Suffix of `ref` in that row; the hash of a group key has no hyphen."""


def nominal_row(state: ScheduleState | None) -> TimerRow | None:
    """Returns the row of the next nominal time or reminder."""
    if state is None or state.next_nominal is None:
        return None
    return TimerRow(at=state.next_nominal, kind=keys.NOMINAL_TIMER, ref=keys.schedule_ref(state.namespace, state.name))


def tick_row(state: ScheduleState | None) -> TimerRow | None:
    """Returns the row of the next tick. It is a deadline of evidence, because it waits for the low watermark."""
    if state is None or state.next_tick is None:
        return None
    ref = f"{keys.schedule_ref(state.namespace, state.name)}{NEXT_TICK}"
    return TimerRow(at=state.next_tick, kind=keys.EVIDENCE_TIMER, ref=ref)


def job_made(state: ScheduleState, every: Duration, now: Instant) -> ScheduleState:
    """Returns the state of a trigger with `at_least_every` after a job was created: the next reminder
    counts from it.
    """
    return replace(state, made_at=now, next_nominal=now + every, reminder=None)


def is_dealt_with(state: ScheduleState, every: Duration, reminder: Instant) -> bool:
    """Returns whether a reminder is settled: a job was created while it waited, or it was decided."""
    return state.made_at + every > reminder


def pending_reminder(state: ScheduleState, every: Duration, resumed_at: Instant) -> Instant | None:
    """Returns the earliest unsettled reminder, due or not; None when all precede a scope resume or are settled."""
    reminders = (state.reminder, state.next_nominal)
    left = [
        each for each in reminders if each is not None and each >= resumed_at and not is_dealt_with(state, every, each)
    ]
    return min(left, default=None)


def leave(unit: UnitOfWork, row: TimerRow, memory: ShardCache | None) -> None:
    """Leaves a due row in place because a scope suspension is in force.

    The suspension's end is the append time of the resume, which nodes learn of later. Then the row is checked again,
    and work after that end is neither lost nor treated as suspended.
    """
    if memory is not None:
        unit.after(partial(memory.leave, row))


def take_again_if_forgotten(unit: UnitOfWork, row: TimerRow, through: Instant, memory: ShardCache | None) -> bool:
    """Requeues a deadline, tick or reminder when the watermark `through` is no longer in memory.

    That happens to a decision that took long, after a silent store: events that were in time may wait again.

    Returns:
        Whether the row was requeued; then its decision is over.
    """
    schedule, _ = row.ref.rsplit("#", 1)
    if memory is None or memory.settled.through(schedule).instant >= through:
        return False
    unit.after(partial(memory.take_again, row))
    return True


def move_row(unit: UnitOfWork, before: TimerRow | None, after: TimerRow | None) -> None:
    """Writes a row in place of another one."""
    if before is not None and before != after:
        unit.forget_row(before.key(unit.shard))
    if after is not None:
        unit.set_row(after, after.key(unit.shard))


def move_rows(unit: UnitOfWork, before: ScheduleState | None, after: ScheduleState) -> None:
    """Moves the rows of a new state, if they changed."""
    for row_of in (nominal_row, tick_row):
        if row_of(before) != row_of(after):
            move_row(unit, row_of(before), row_of(after))


def as_all_read_it(unit: UnitOfWork, state: ScheduleState, trigger: TimeTrigger) -> ScheduleState:
    """Returns the state with its next instant in place of a search bound, when older releases may read it."""
    following = state.following
    if unit.writes_version >= BOUNDS or not following.is_bound or following.at is None:
        return state
    found = trigger.seek(following.at - 1, keys.schedule_ref(state.namespace, state.name), Search())
    return state.at_next(found if following.since is None else found._replace(since=following.since))


AT_LEAST = "#at-least"
"""Suffix of `ref` in that row; the hash of a group key has no hyphen."""


def remind(unit: UnitOfWork, state: ScheduleState, trigger: EventTrigger, now: int) -> None:
    """Turns a due reminder into a deadline after all events that may still count before it, and sets the next reminder.

    A reminder before a scope resume creates nothing; the next one is the first after the resume at the same pace.
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
        TimerRow(at=following, kind=keys.NOMINAL_TIMER, ref=ref),
        TimerRow(at=state.next_nominal, kind=keys.EVIDENCE_TIMER, ref=f"{ref}{AT_LEAST}", detail=str(state.generation)),
    ):
        unit.set_row(row, row.key(unit.shard))


def remind_anew(unit: UnitOfWork, state: ScheduleState, trigger: EventTrigger, now: int) -> None:
    """Moves the next reminder after a requested run: any run counts like a job of the schedule itself."""
    if trigger.at_least_every is None:
        return
    after = job_made(state, trigger.at_least_every, now)
    unit.put(after, after.key(unit.shard))
    move_rows(unit, state, after)
