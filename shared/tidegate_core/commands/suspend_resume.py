"""Suspend and resume of one schedule as pure rules: the next state, in four modes.

    mode     waiting jobs   runs before the gate   events and instants   clocks of time-outs
    drop     cancelled      cancelled              ignored               -
    drain    may launch     go on                  ignored               run
    hold     parked         parked                 make parked jobs      stopped
    freeze   parked         parked                 ignored               stopped

`apply_request.py` calls them; `pending_pages.py` carries out the second and third column. Where events are ignored, the
state gets a new generation, which counts from its activation on. Kept jobs belong to an older generation
(`oldest_kept_generation`).
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
from tidegate_core.language.values.problems import Problem
from tidegate_core.language.values.states import Backlog
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
"""Spans in each of two lists of the state: suspensions, for explanations, and stopped clocks, for late events. A list has 224 bytes of the
state's 1 KB."""

TEXT_CHARACTERS_MAX = 100
"""Kept of the actor and the reason of a suspend. An update overwrites both in the state, but the state must still show the suspend."""

RESUME_FIRST = Problem("mode", "differs from how the schedule is suspended already", "resume it first")
ANOTHER_SUSPEND = Problem(
    "suspended_at", "is not when the schedule was suspended, or it began so", "read its suspension, and decide again"
)
ANOTHER_END = Problem("until", "differs from the end that the suspension has already", "resume it first")
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
    """Returns the result of `schedule.suspend`: no stopped work starts after its receipt (I7)."""
    if before is None or before.status == "deleted" or definition is None:
        return StateChange(ReceiptStatus.NOT_FOUND)
    spec = parsed(definition.spec)
    if before.status == "suspended":
        if request.mode not in (None, before.mode):
            return StateChange(ReceiptStatus.CONFLICT, errors=(RESUME_FIRST,))
        if request.until not in (None, before.until):
            return StateChange(ReceiptStatus.CONFLICT, errors=(ANOTHER_END,))
        # I7 holds for this answer too. So its pages end what the earlier suspend has not ended.
        return replace(untouched(ReceiptStatus.UNCHANGED, before, position), has_pages=True)
    mode = request.mode or spec.suspend_mode
    # A former owner may have carried out an earlier end by a clock ahead of this one, and left its row and answer. So a new end must be later.
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
            # The unfinished cut of an earlier resume stays, and still ends the jobs that it leaves out.
            state = replace(state, kept_from=oldest_kept_generation(before))
    return StateChange(ReceiptStatus.ACCEPTED, state, has_pages=True)


def _suspend_problems(spec: ScheduleSpec, mode: str, until: int | None, now: int) -> tuple[Problem, ...]:
    of_target = spec.target_rules.suspend_problem(mode)
    errors = [] if of_target is None else [of_target]
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
    """Returns the result of `schedule.resume`.

    A suspended span is never a misfire: time triggers go on from now, unless the request asks for a backlog.

    Args:
        before: State of the schedule; None: there is no schedule.
        definition: Definition of the state's version.
        request: Request.
        position: Position of the request.
        now: Time on the owner's clock.
        waiting: Jobs that wait; the clock of a former owner may have said when they were satisfied.
    """
    if before is None or before.status == "deleted" or definition is None:
        return StateChange(ReceiptStatus.NOT_FOUND)
    if before.status == "active":
        return untouched(ReceiptStatus.UNCHANGED, before, position)
    if request.suspended_at is not None and not _began_at(before, request.suspended_at):
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
    since = _jobs_outside_cut(state, before, waiting)
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
    backlog = _backlog_occurrences(state, spec) if state.next_nominal != first.at else 0
    backlog += since if clocks_stopped(before) else 0
    has_pages = clocks_stopped(before) or state.shedding is not None
    return StateChange(ReceiptStatus.ACCEPTED, state, has_pages=has_pages, next=following, backlog=backlog)


def _with_cut(
    state: ScheduleState, before: ScheduleState, backlog: Backlog | None, waiting: Sequence[Job]
) -> ScheduleState:
    """Returns the state with the cut that a resume makes in the waiting jobs.

    All waiting jobs are the backlog. This release finds them by `backlog_through`, an older release by `changed_at`.

    An earlier resume may have an unfinished cut. Jobs that it ends are ended in any case. If this resume keeps all of the rest, that cut stays.
    Otherwise the new `backlog` replaces it. Two values that each keep one job keep the same job, so the later value counts for all.

    A scope suspension may still be open here because its end arrives late. Instants that came due in it have no job yet: they are made only if
    the resume asks for `all`.
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


def _jobs_outside_cut(state: ScheduleState, before: ScheduleState, waiting: Sequence[Job]) -> int:
    """Returns how many waiting jobs the unfinished cut does not touch. All of them go on, and its pages do not count them."""
    if before.shedding is None:
        return 0
    return sum(
        job.generation >= oldest_kept_generation(before) and not awaits_backlog_cut(state, job) for job in waiting
    )


def _began_at(before: ScheduleState, suspended_at: int) -> bool:
    """Whether a request suspended the schedule at exactly that instant.

    A resume that names an instant means that suspend alone. So it must not end another one.
    """
    return before.stopped_by is not None and before.suspended_at == suspended_at


def _with_span(spans: tuple[int, ...], begin: int, end: int) -> tuple[int, ...]:
    return (*spans, begin, end)[-2 * SPANS_KEPT :]


def _backlog_problems(spec: ScheduleSpec, before: ScheduleState, backlog: Backlog | None) -> tuple[Problem, ...]:
    of_target = spec.target_rules.backlog_problem(backlog)
    if of_target is not None:
        return (of_target,)
    if isinstance(spec.trigger, EventTrigger) and backlog in {"last", "coalesce"} and clocks_stopped(before):
        return (ONE_EACH,)
    return ()


def _backlog_occurrences(state: ScheduleState, spec: ScheduleSpec) -> int:
    """Returns how many occurrences a resume makes for the suspended span."""
    return min(misfires.to_make_up(state, spec), spec.catchup.max_runs + 1 if state.missed_as == "all" else 1)
