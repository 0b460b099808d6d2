"""Instants that did not fire: misfires that a schedule itself must catch up, and local times that a clock change
skipped.

The request that ends a generation writes the span of misfires into the state. By default there is none: a suspended
span has no misfires, and a new trigger counts from the update.

The span of an update begins after the last occurrence, so it may include scope suspensions; instants in them get no
job (`missed_by_update`). The walk decides about them, because nodes learn of a suspension's end later than of the
request. For other causes instants in a scope suspension count: a schedule that was created after it was not suspended
by it, and a resume that asks for the backlog reports its size. If the suspension continues, all of them become due at
its end. Instants that a resume left out are never caught up.

The ledger states each skipped local time once, in the transaction of the next occurrence. A schedule that is
suspended, changed or deleted before that has no gap in what it owes, unless it catches up that span.
`TimeTrigger.skips` tells the gaps of a trigger without that wait.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate_core.language.definitions.catch_up_policy import CatchUp
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.time.wall_clock import Skip
from tidegate_core.language.triggers.search import Search
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.derived_ids import nominal_mark, run_id
from tidegate_core.language.values.instants import Instant, as_datetime
from tidegate_core.rows import keys
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard.jobs import time_job, write_ledger
from tidegate_core.writes.unit_of_work import UnitOfWork

COUNTED_MAX = 1_000
"""Instants counted for an answer: a cron expression costs some 20 µs each, and other decisions wait."""


def after_pause(
    state: ScheduleState, spec: ScheduleSpec, before: ScheduleState, backlog: CatchUp | None
) -> ScheduleState:
    """Returns the state of a resumed schedule, with the misfires of its suspended span.

    A schedule that was created suspended and never active starts now: earlier instants belong to its creation.

    Args:
        state: State after the resume.
        spec: Definition of the schedule.
        before: State during the suspension.
        backlog: Catch-up mode in the resume, which replaces the schedule's.
    """
    state = _missing_nothing(state)
    since = before.suspended_at or before.changed_at
    start = spec.trigger.start if isinstance(spec.trigger, TimeTrigger) else None
    was_never_active = before.stopped_by is None  # It was created suspended, even if it was updated since.
    if backlog is None and was_never_active and start is not None and spec.catchup.on_create != "none":
        return _making_up(state, spec, start, spec.catchup.on_create)
    return _making_up(state, spec, since, backlog or spec.catchup.after_pause)


def made_up_by_apply(spec: ScheduleSpec, before: ScheduleState | None) -> CatchUp:
    """Returns the catch-up mode for past instants at an apply, or at the first resume of a schedule that was created
    suspended.
    """
    if before is None or before.status == "deleted":
        return spec.catchup.on_create
    if before.status == "active":
        return spec.catchup.after_update
    return spec.catchup.on_create if before.stopped_by is None else "none"


def after_apply(state: ScheduleState, spec: ScheduleSpec, before: ScheduleState | None) -> ScheduleState:
    """Returns the state after an apply, with the misfires of its trigger.

    Args:
        state: State after the apply.
        spec: Applied definition.
        before: Earlier state; None for a new name.
    """
    if before is not None and before.generation == state.generation:
        return state  # Carried on: it has the same trigger and the same misfires.
    state = _missing_nothing(state)
    if not isinstance(spec.trigger, TimeTrigger):
        return state
    if before is None or before.status == "deleted":
        start = spec.trigger.start
        return state if start is None else _making_up(state, spec, start, spec.catchup.on_create)
    begin = max(before.fired_through + 1, before.activated_at, (before.unmade_through or 0) + 1)
    if before.status != "active":
        return state
    making_up = _making_up(state, spec, begin, spec.catchup.after_update)
    # A past `at` counts with each activation, so it needs no catch-up.
    counts_anyway = spec.trigger.counts_from(state.activated_at) < state.activated_at
    is_missing = making_up.missed_as is not None and not counts_anyway
    return replace(making_up, missed_by_update=True) if is_missing else making_up


def to_make_up(state: ScheduleState, spec: ScheduleSpec) -> int:
    """Returns the number of misfires in a new state, as far as they are counted and quickly found."""
    if state.missed_until is None:
        return 0
    assert isinstance(spec.trigger, TimeTrigger)
    ref = keys.schedule_ref(state.namespace, state.name)
    search = Search.of_a_decision()
    following, count = state.following, 0
    left = spec.trigger.fires_left(state.fires)
    most = COUNTED_MAX if left is None else min(left, COUNTED_MAX)
    while (nominal := following.found) is not None and nominal < state.missed_until and count < most:
        count += 1
        following = spec.trigger.seek(nominal, ref, search)
    return count


def left_behind(state: ScheduleState, spec: ScheduleSpec, coming: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the coming instants within `max_fires` after the misfires, which count and fire first."""
    left = spec.trigger.fires_left(state.fires) if isinstance(spec.trigger, TimeTrigger) else None
    return coming if left is None else coming[: left - to_make_up(state, spec)]


def _missing_nothing(state: ScheduleState) -> ScheduleState:
    """Returns the state without misfires of the former generation, and without instants that a resume left out of the backlog."""
    return replace(
        state, missed_from=None, missed_until=None, missed_as=None, missed_by_update=None, unmade_through=None
    )


def _making_up(state: ScheduleState, spec: ScheduleSpec, begin: int, mode: CatchUp) -> ScheduleState:
    if mode == "none" or state.status != "active" or not isinstance(spec.trigger, TimeTrigger):
        return state
    if not spec.target_rules.makes_jobs:
        return state
    if spec.trigger.fires_left(state.fires) == 0:
        return state
    end = state.activated_at
    # Older instants are outside the window, and years of seconds are many.
    begin = max(begin, end - spec.catchup.window)
    ref = keys.schedule_ref(state.namespace, state.name)
    first = spec.trigger.seek(max(begin, state.fired_through + 1) - 1, ref, Search.of_a_decision())
    if not first.is_due(end - 1):
        return state
    # If that is only a search bound, there may be none. Then the search continues to the first instant that counts
    # from now on.
    return replace(state.at_next(first), missed_from=begin, missed_until=end, missed_as=mode)


SKIPS_TOLD = 16
"""Skipped times in one transaction, the latest ones: eight years with one gap a year, and far below 100 actions."""


def write_skips(unit: UnitOfWork, state: ScheduleState, spec: ScheduleSpec, through: Instant, now: Instant) -> None:
    """Records the local times that were skipped since the last occurrence, up to `through`.

    Args:
        unit: Unit of work that moves `next_nominal`.
        state: State before that.
        spec: Definition of the state's version.
        through: Nominal time of the last walked occurrence.
        now: Time of the entry.
    """
    trigger = spec.trigger
    assert isinstance(trigger, TimeTrigger)
    made_up = state.activated_at if state.missed_from is None else state.missed_from
    since = max(state.fired_through, min(made_up, state.activated_at) - 1)
    ref = keys.schedule_ref(state.namespace, state.name)
    for skip in trigger.skips(since, through, ref)[-SKIPS_TOLD:]:
        is_promised = not state.missed_by_update and made_up <= skip.instant < state.activated_at
        if not is_promised and unit.controls.suspended_until(spec.namespace, skip.instant, now) is not None:
            continue  # An instant in a suspended span was never due.
        mark = nominal_mark(skip.instant)
        job = replace(
            time_job(unit.shard, state, spec, skip.instant, now),
            # Not an id of an occurrence: one may have its nominal time at the first instant after the gap.
            id=run_id(unit.shard, state.incarnation, skip.reason, mark),
            interval_start=None,
            interval_end=None,
        )
        write_ledger(unit, job, "skipped", skip.reason, now, left_out(skip))


def left_out(skip: Skip) -> str:
    """Returns a description of a skipped span."""
    first, last = (as_datetime(wall * 1000) for wall in (skip.first, skip.last))
    times = f"{first:%Y-%m-%d %H:%M:%S}"
    if last != first:
        times += f" to {last:%Y-%m-%d %H:%M:%S}"
    why = "the rules of the zone changed" if skip.reason == "zone_jump" else "dst_gap is skip"
    return f"local time {times} does not exist: the clock was set forward; {why}"
