"""Suspend and resume of one schedule: what each makes of its state, in four modes (SEMANTICS 10).

    mode     waiting jobs   runs before the gate   events and instants   clocks of time-outs
    drop     cancelled      cancelled              ignored               -
    drain    may launch     go on                  ignored               run
    hold     parked         parked                 make parked jobs      stand still
    freeze   parked         parked                 ignored               stand still

Ignoring means a new generation, which hears from its activation on; what is kept is then of an older one (`oldest_kept_generation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidegate_core.commands.schedule_commands import StateChange, first_nominal, next_instants, next_state, untouched
from tidegate_core.evidence.tick_cursor import first_tick
from tidegate_core.firing import misfires
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.requests import ScheduleResume, ScheduleSuspend
from tidegate_core.language.triggers.search import NEVER
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.pending_modes import Backlog
from tidegate_core.language.values.problems import Problem
from tidegate_core.rows import keys
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.shard.schedule_state import (
    awaits_backlog_cut,
    backlog_through,
    clocks_stopped,
    fires,
    fires_through,
    goes_on_at,
    oldest_kept_generation,
    parsed,
    stopped,
)

SPANS_KEPT = 8
"""Suspended spans that the state names, for whoever asks why nothing ran then, and those in which the clocks stood still, for what comes
late: 224 bytes each of its 1 KB."""

TEXT_CHARACTERS_MAX = 100
"""Of who suspended it and why: an update says who made that, and the state has to tell of the suspend still."""

RESUME_FIRST = Problem("mode", "differs from how the schedule is suspended already", "resume it first")
ANOTHER_SUSPEND = Problem(
    "suspended_at", "is not when the schedule was suspended, or it began so", "look at its suspension, and decide anew"
)
ANOTHER_END = Problem("until", "differs from when the schedule is resumed by itself already", "resume it first")
PROGRAMS_ONLY = Problem("mode", "is for schedules that start programs: messages wait for nothing", "use drop")
NO_BACKLOG = Problem(
    "backlog", "is for schedules that start programs: of what a suspended one missed nothing is sent", "use none"
)
ONE_EACH = Problem(
    "backlog", "would merge what different events have made", "use all or none: last and coalesce are for time triggers"
)


def suspended(
    before: ScheduleState | None,
    definition: Definition | None,
    request: ScheduleSuspend,
    position: Position,
    now: int,
) -> StateChange:
    """`schedule.suspend`: nothing that it stops starts once it is acknowledged (I7)."""
    if before is None or before.status == "deleted" or definition is None:
        return StateChange(ReceiptStatus.NOT_FOUND)
    spec = parsed(definition.spec)
    if before.status == "suspended":
        if request.mode not in (None, before.mode):
            return StateChange(ReceiptStatus.CONFLICT, errors=(RESUME_FIRST,))
        if request.until not in (None, before.until):
            return StateChange(ReceiptStatus.CONFLICT, errors=(ANOTHER_END,))
        # Acknowledged it is as well: what the suspend before it could not end yet is in its way.
        return replace(untouched(ReceiptStatus.UNCHANGED, before, position), has_pages=True)
    mode = request.mode or spec.suspend_mode
    # An end that was carried out is not to come again, though this clock may be behind the one by which it was: its row and answer are there.
    errors = _suspend_problems(spec, mode, request.until, max(now, before.changed_at, *before.pauses[-1:]))
    if errors:
        return StateChange(ReceiptStatus.REJECTED, errors=errors)
    state = next_state(
        before,
        position,
        request.namespace,
        request.name,
        now,
        status="suspended",
        mode=mode,
        suspended_at=now,
        until=request.until,
        stopped_by=(request.actor or "")[:TEXT_CHARACTERS_MAX],
        stopped_for=request.reason[:TEXT_CHARACTERS_MAX] if request.reason else None,
        actor=request.actor,
        reason=request.reason,
    )
    if not fires(state):
        state = replace(state.at_next(NEVER).at_tick(NEVER), generation=before.generation + 1)
        if mode == "drop":
            state = replace(state, kept_from=None, shedding=None, cut_through=None)
        else:
            # A cut that is not through stands: the resume that asked for it is still to end what it has not left.
            state = replace(state, kept_from=oldest_kept_generation(before))
    return StateChange(ReceiptStatus.ACCEPTED, state, has_pages=True)


def _suspend_problems(spec: ScheduleSpec, mode: str, until: int | None, now: int) -> tuple[Problem, ...]:
    errors: list[Problem] = []
    if spec.sends_messages and mode != "drop":
        errors.append(PROGRAMS_ONLY)
    if until is not None and until <= now:
        errors.append(Problem("until", "has passed", "name an instant that is still to come"))
    return tuple(errors)


def resumed(
    before: ScheduleState | None,
    definition: Definition | None,
    request: ScheduleResume,
    position: Position,
    now: int,
    waiting: Sequence[Job] = (),
) -> StateChange:
    """`schedule.resume`: a suspended span is never a miss, time triggers go on from now unless a backlog is asked for.

    Args:
        before: The state, if the schedule is there.
        definition: Of its version.
        request: What is asked for.
        position: Its own.
        now: The owner's clock.
        waiting: The jobs that wait: satisfied by the clock of an owner before this one, it may be.
    """
    if before is None or before.status == "deleted" or definition is None:
        return StateChange(ReceiptStatus.NOT_FOUND)
    if before.status == "active":
        return untouched(ReceiptStatus.UNCHANGED, before, position)
    if request.suspended_at is not None and not _is_that_suspend(before, request.suspended_at):
        return StateChange(ReceiptStatus.CONFLICT, errors=(ANOTHER_SUSPEND,))
    spec = parsed(definition.spec)
    errors = _backlog_problems(spec, before, request.backlog)
    if errors:
        return StateChange(ReceiptStatus.REJECTED, errors=errors)
    state = next_state(
        before,
        position,
        request.namespace,
        request.name,
        now,
        status="active",
        until=None,
        stopped_by=None,
        stopped_for=None,
        stopped_ms=stopped(before, now),
        last_stops=_with_span(before.last_stops, before.suspended_at, goes_on_at(before, now))
        if clocks_stopped(before)
        else before.last_stops,
        pauses=_with_span(before.pauses, before.suspended_at or before.changed_at, now),
        actor=request.actor,
        reason=request.reason,
    )
    state = _with_cut(state, before, request.backlog if fires(before) else None, waiting)
    since = _made_since_cut(state, before, waiting)
    if fires(before):
        following = next_instants(spec, state, now)
        return StateChange(ReceiptStatus.ACCEPTED, state, has_pages=True, next=following, backlog=since or None)
    ref = keys.schedule_ref(request.namespace, request.name)
    first = first_nominal(spec, ref, before, now, resumed=True)
    state = replace(state, generation=before.generation + 1, activated_at=now)
    state = state.at_next(first).at_tick(first_tick(spec, before, now))
    following = next_instants(spec, state, now)
    state = misfires.after_pause(state, spec, before, request.backlog)
    following = misfires.left_behind(state, spec, following)
    backlog = _made_of_it(state, spec) if state.next_nominal != first.at else 0
    backlog += since if clocks_stopped(before) else 0
    has_pages = clocks_stopped(before) or state.shedding is not None
    return StateChange(ReceiptStatus.ACCEPTED, state, has_pages=has_pages, next=following, backlog=backlog)


def _with_cut(
    state: ScheduleState, before: ScheduleState, backlog: Backlog | None, waiting: Sequence[Job]
) -> ScheduleState:
    """Returns the state with what a resume leaves of what waits.

    All that waits is its backlog: `releasing` goes by the instant of the last of it, and an older version that takes over by the other one. But
    what an earlier resume has cut, and not ended yet, is nobody's to leave: where this one leaves all of the rest that cut stands as it is,
    else this word takes its place, behind what ends in any case. Two words that each leave one job leave the same one: the later word is said of all.

    What has come due and is not made yet, for a wide suspend goes on whose end is heard of late, does not wait: unless all is to go on nothing
    of it does.
    """
    word = None if backlog == "all" else backlog
    unmade_through = before.unmade_through if word is None else fires_through(before, state.changed_at)
    latest = max((job.satisfied_at for job in waiting), default=0)
    through = max(state.changed_at, latest)
    state = replace(state, changed_at=through, unmade_through=unmade_through)
    if before.shedding is None:
        return replace(state, backlog_through=through, shedding=word)
    cut = backlog_through(before)
    if word is None:
        return replace(state, backlog_through=cut)
    cut_through = cut if before.shedding == "none" else before.cut_through
    return replace(
        state,
        backlog_through=max(through, cut),
        shedding=word,
        cut_through=None if word == "none" else cut_through,
    )


def _made_since_cut(state: ScheduleState, before: ScheduleState, waiting: Sequence[Job]) -> int:
    """Returns how many jobs wait beside a cut that stands: all of them go on, and its pages do not count them."""
    if before.shedding is None:
        return 0
    return sum(
        job.generation >= oldest_kept_generation(before) and not awaits_backlog_cut(state, job) for job in waiting
    )


def _is_that_suspend(before: ScheduleState, suspended_at: int) -> bool:
    """Whether somebody suspended it at that very instant: who resumes what a repair has stopped means that and nothing else."""
    return before.stopped_by is not None and before.suspended_at == suspended_at


def _with_span(spans: tuple[int, ...], begin: int, end: int) -> tuple[int, ...]:
    return (*spans, begin, end)[-2 * SPANS_KEPT :]


def _backlog_problems(spec: ScheduleSpec, before: ScheduleState, backlog: Backlog | None) -> tuple[Problem, ...]:
    if spec.sends_messages and backlog not in (None, "none"):
        return (NO_BACKLOG,)
    if isinstance(spec.trigger, EventTrigger) and backlog in {"last", "coalesce"} and clocks_stopped(before):
        return (ONE_EACH,)
    return ()


def _made_of_it(state: ScheduleState, spec: ScheduleSpec) -> int:
    """Returns how many occurrences stand for the suspended span."""
    return min(misfires.to_make_up(state, spec), spec.catchup.max_runs + 1 if state.missed_as == "all" else 1)
