"""Local times that a clock change left out: the ledger says of each that it was skipped, and why (SEMANTICS 2.1, 2.3).

Told in the transaction of the next occurrence, which moves the cursor past the gap: so each is told once, and a schedule that
is suspended, changed or deleted before that has no gap in what it owes, unless it makes up for that span. What a trigger would say of a gap at once, without
waiting for that, is `TimeTrigger.skips`, which is pure.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.time.wall_clock import Skip
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.derived_ids import nominal_mark, run_id
from tidegate_core.language.values.instants import Instant, as_datetime
from tidegate_core.rows import keys
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard.jobs import time_job, write_ledger
from tidegate_core.writes.unit_of_work import UnitOfWork

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
