"""Timer rows of a schedule's state: they lie where the state says, so both move in one transaction."""

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
"""End of such a row's `ref`; the hash of a group's key has no hyphen."""


def nominal_row(state: ScheduleState | None) -> TimerRow | None:
    """Returns the row of the next instant, or of the next reminder."""
    if state is None or state.next_nominal is None:
        return None
    return TimerRow(at=state.next_nominal, kind=keys.NOMINAL_TIMER, ref=keys.schedule_ref(state.namespace, state.name))


def tick_row(state: ScheduleState | None) -> TimerRow | None:
    """Returns the row of the next tick: a deadline of evidence, because it waits for all that was appended before it."""
    if state is None or state.next_tick is None:
        return None
    ref = f"{keys.schedule_ref(state.namespace, state.name)}{NEXT_TICK}"
    return TimerRow(at=state.next_tick, kind=keys.EVIDENCE_TIMER, ref=ref)


def job_made(state: ScheduleState, every: Duration, now: Instant) -> ScheduleState:
    """Returns the state of a trigger with `at_least_every` once a job was made: the next reminder counts from it."""
    return replace(state, made_at=now, next_nominal=now + every, reminder=None)


def is_dealt_with(state: ScheduleState, every: Duration, reminder: Instant) -> bool:
    """What was counted while the reminder waited has made a job, from which the next one counts; or this one was decided."""
    return state.made_at + every > reminder


def pending_reminder(state: ScheduleState, every: Duration, resumed_at: Instant) -> Instant | None:
    """Returns the earliest reminder that is not decided, be it still to come; none of before a wide resume, or that is dealt with."""
    reminders = (state.reminder, state.next_nominal)
    left = [
        each for each in reminders if each is not None and each >= resumed_at and not is_dealt_with(state, every, each)
    ]
    return min(left, default=None)


def leave(unit: UnitOfWork, row: TimerRow, memory: ShardCache | None) -> None:
    """Leaves a row that is due where it is, because a wide suspend goes on.

    Its end counts from the append time of the resume, which is heard of later: then the row is looked at again, and what lies
    behind the end is neither lost nor taken for suspended.
    """
    if memory is not None:
        unit.after(partial(memory.leave, row))


def take_again_if_forgotten(unit: UnitOfWork, row: TimerRow, through: Instant, memory: ShardCache | None) -> bool:
    """Lets a deadline, a tick or a reminder have its turn once more where it is not known any longer that all is counted by `through`.

    Of a decision that took long, behind a silence of the store's, that may be forgotten: then what came in time may wait again.

    Returns:
        Whether it has; then its decision is over.
    """
    schedule, _ = row.ref.rsplit("#", 1)
    if memory is None or memory.settled.through(schedule).instant >= through:
        return False
    unit.after(partial(memory.take_again, row))
    return True


def move_row(unit: UnitOfWork, before: TimerRow | None, after: TimerRow | None) -> None:
    """Writes a row in the place of another one."""
    if before is not None and before != after:
        unit.forget_row(before.key(unit.shard))
    if after is not None:
        unit.set_row(after, after.key(unit.shard))


def move_rows(unit: UnitOfWork, before: ScheduleState | None, after: ScheduleState) -> None:
    """Moves the rows of a state that is written, as far as they have moved."""
    for row_of in (nominal_row, tick_row):
        if row_of(before) != row_of(after):
            move_row(unit, row_of(before), row_of(after))


def as_all_read_it(unit: UnitOfWork, state: ScheduleState, trigger: TimeTrigger) -> ScheduleState:
    """Returns the state as it may be written: with its next instant in the place of a bound, where not all nodes know of those."""
    following = state.following
    if unit.writes_version >= BOUNDS or not following.is_bound or following.at is None:
        return state
    found = trigger.seek(following.at - 1, keys.schedule_ref(state.namespace, state.name), Search())
    return state.at_next(found if following.since is None else found._replace(since=following.since))


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
        TimerRow(at=following, kind=keys.NOMINAL_TIMER, ref=ref),
        TimerRow(at=state.next_nominal, kind=keys.EVIDENCE_TIMER, ref=f"{ref}{AT_LEAST}", detail=str(state.generation)),
    ):
        unit.set_row(row, row.key(unit.shard))


def remind_anew(unit: UnitOfWork, state: ScheduleState, trigger: EventTrigger, now: int) -> None:
    """A run was asked for by hand: any run counts, so the next reminder is moved as by a job of the schedule's own."""
    if trigger.at_least_every is None:
        return
    after = job_made(state, trigger.at_least_every, now)
    unit.put(after, after.key(unit.shard))
    move_rows(unit, state, after)
