"""What a schedule itself missed, and is to make up for: written down in its state by the request that ends it (SEMANTICS 3.5).

By default it is nothing: a suspended span is no miss, and what an update brings counts from then on. What an update is to make up for begins
right behind the last occurrence, so it may reach over wide suspends: of these nothing is made (`missed_by_update`; which they were is known to
the walk, not to the request: their ends are heard of late). Otherwise with the other causes. Who is made after a wide suspend was not suspended
by it; and who resumes a schedule that was suspended by itself meanwhile, and asks for the backlog, is told how much that is. Where the wide
suspend goes on still, all of it comes due with its end. What a resume left out before it was made nobody makes up for.
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
"""Instants that are counted for an answer: a cron expression costs some 20 µs each, and the lane has others to serve."""


def after_pause(
    state: ScheduleState, spec: ScheduleSpec, before: ScheduleState, backlog: CatchUp | None
) -> ScheduleState:
    """Returns the state of a schedule that goes on, with what lay in its suspended span to be made up for.

    One that began suspended, and was never active, begins now: what lay before that is its creation's.

    Args:
        state: As the resume makes it.
        spec: Its definition.
        before: Its state while it was suspended.
        backlog: What the resume asks for instead of the schedule's own word.
    """
    state = _missing_nothing(state)
    since = before.suspended_at or before.changed_at
    start = spec.trigger.start if isinstance(spec.trigger, TimeTrigger) else None
    was_never_active = before.stopped_by is None  # Nobody has suspended it: it began so, whatever has updated it since.
    if backlog is None and was_never_active and start is not None and spec.catchup.on_create != "none":
        return _making_up(state, spec, start, spec.catchup.on_create)
    return _making_up(state, spec, since, backlog or spec.catchup.after_pause)


def made_up_by_apply(spec: ScheduleSpec, before: ScheduleState | None) -> CatchUp:
    """Returns what an apply, or the first resume of a schedule that began suspended, makes of instants that have passed."""
    if before is None or before.status == "deleted":
        return spec.catchup.on_create
    if before.status == "active":
        return spec.catchup.after_update
    return spec.catchup.on_create if before.stopped_by is None else "none"


def after_apply(state: ScheduleState, spec: ScheduleSpec, before: ScheduleState | None) -> ScheduleState:
    """Returns the state after an apply, with what its trigger named before to be made up for.

    Args:
        state: As the apply makes it.
        spec: What is applied.
        before: None when the name was not there.
    """
    if before is not None and before.generation == state.generation:
        return state  # Carried: what it was to make up for it still is, and its trigger is the same.
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
    # A past `at` counts with each activation, wherever it lies, and needs nobody to make up for it (SEMANTICS 1.5).
    counts_anyway = spec.trigger.counts_from(state.activated_at) < state.activated_at
    is_missing = making_up.missed_as is not None and not counts_anyway
    return replace(making_up, missed_by_update=True) if is_missing else making_up


def to_make_up(state: ScheduleState, spec: ScheduleSpec) -> int:
    """Returns how many instants a state that was just made has to make up for, as far as they are counted and found soon."""
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
    """Returns those of the coming instants that `max_fires` has room for behind what is made up for: that counts, and comes first."""
    left = spec.trigger.fires_left(state.fires) if isinstance(spec.trigger, TimeTrigger) else None
    return coming if left is None else coming[: left - to_make_up(state, spec)]


def _missing_nothing(state: ScheduleState) -> ScheduleState:
    """What a former generation was to make up for, or to leave out, went with it."""
    return replace(
        state, missed_from=None, missed_until=None, missed_as=None, missed_by_update=None, unmade_through=None
    )


def _making_up(state: ScheduleState, spec: ScheduleSpec, begin: int, mode: CatchUp) -> ScheduleState:
    if mode == "none" or state.status != "active" or spec.sends_messages or not isinstance(spec.trigger, TimeTrigger):
        return state
    if spec.trigger.fires_left(state.fires) == 0:
        return state
    end = state.activated_at
    begin = max(begin, end - spec.catchup.window)  # Nobody waits for what is older, and years of seconds are many.
    ref = keys.schedule_ref(state.namespace, state.name)
    first = spec.trigger.seek(max(begin, state.fired_through + 1) - 1, ref, Search.of_a_decision())
    if not first.is_due(end - 1):
        return state
    # Where that is but a bound there may be none: then the search goes on to the first one that counts from now on.
    return replace(state.at_next(first), missed_from=begin, missed_until=end, missed_as=mode)


SKIPS_TOLD = 16
"""In one transaction, the latest ones: eight years of one gap a year between two occurrences, and far below 100 actions."""


def write_skips(unit: UnitOfWork, state: ScheduleState, spec: ScheduleSpec, through: Instant, now: Instant) -> None:
    """Writes what was left out since the last occurrence, up to that of `through`.

    Args:
        unit: Of the transaction that moves the cursor.
        state: Before that.
        spec: Of the state's version.
        through: Nominal of the last occurrence that was walked.
        now: When it is told.
    """
    trigger = spec.trigger
    assert isinstance(trigger, TimeTrigger)
    made_up = state.activated_at if state.missed_from is None else state.missed_from
    since = max(state.fired_through, min(made_up, state.activated_at) - 1)
    ref = keys.schedule_ref(state.namespace, state.name)
    for skip in trigger.skips(since, through, ref)[-SKIPS_TOLD:]:
        is_promised = not state.missed_by_update and made_up <= skip.instant < state.activated_at
        if not is_promised and unit.controls.suspended_until(spec.namespace, skip.instant, now) is not None:
            continue  # What lies in a suspended span was never due.
        mark = nominal_mark(skip.instant)
        job = replace(
            time_job(unit.shard, state, spec, skip.instant, now),
            # Not the id of an occurrence: one may have its nominal at the very instant after the gap.
            id=run_id(unit.shard, state.incarnation, skip.reason, mark),
            interval_start=None,
            interval_end=None,
        )
        write_ledger(unit, job, "skipped", skip.reason, now, left_out(skip))


def left_out(skip: Skip) -> str:
    """Returns in words what a gap left out."""
    first, last = (as_datetime(wall * 1000) for wall in (skip.first, skip.last))
    times = f"{first:%Y-%m-%d %H:%M:%S}"
    if last != first:
        times += f" to {last:%Y-%m-%d %H:%M:%S}"
    why = "the zone was defined anew" if skip.reason == "zone_jump" else "dst_gap is skip"
    return f"local time {times} does not exist: the clock was set forward; {why}"
