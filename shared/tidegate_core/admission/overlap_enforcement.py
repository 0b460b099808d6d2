"""Overlap takes effect: which of a schedule's jobs that have to wait, or are parked, end, and which stand for others (SEMANTICS 4).

What each policy makes of them is in `overlap_rules.py`; here is whom it judges. Called by the admission, which has let go what can go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidegate_core.admission import overlap_rules, permits
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.rows import keys
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.shard.job_order import flexible_hold
from tidegate_core.shard.jobs import end_job
from tidegate_core.shard.schedule_state import spec_of
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.unit_of_work import UnitOfWork


def settle_jobs(
    unit: UnitOfWork,
    memory: ShardCache,
    jobs: Sequence[Job],
    most: int,
    now: int,
    ends: Callable[[str], None],
    *,
    parked: bool = False,
    only_asks: bool = False,
) -> bool:
    """Ends some of a schedule's jobs, as their overlap says; returns whether there was one to end.

    Those of each version are judged by its own policy: where an update lets the old ones finish, the new ones are not theirs.

    Args:
        unit: Of this decision.
        memory: Knows the runs that are open.
        jobs: All that wait, in their order, as the schedule's state makes them.
        most: Jobs that may end.
        now: The present.
        ends: Called with each that is to end.
        parked: The schedule is held: nothing runs, and what is parked stays within `max_pending`.
        only_asks: Ends none: the decision has enough to do.

    Raises:
        TooLarge: Another decision of this transaction has written one of them.
    """
    unit.require_untouched(job.key(unit.shard) for job in jobs)
    for version in dict.fromkeys(job.version for job in jobs):
        mine = [job for job in jobs if job.version == version]
        spec = spec_of(unit, mine[0].namespace, mine[0].name, version)
        assert spec is not None
        settled = (
            overlap_rules.settle_parked(spec, mine, most) if parked else _settled(unit, memory, spec, mine, most, now)
        )
        if not settled.ended:
            continue
        if not only_asks:
            for each in settled.ended:
                ends(each.job.id)
                end_job(unit, each.job, each.disposition, each.reason, now, each.detail)
            if settled.kept is not None:
                unit.put(settled.kept, settled.kept.key(unit.shard))
        return True
    return False


def holders_of(unit: UnitOfWork, memory: ShardCache, spec: ScheduleSpec) -> tuple[str, ...]:
    """Returns the runs that are open, as overlap counts them: also those for which no limit held when they were admitted.

    Raises:
        TooLarge: As `permits.open_without_permit`.
    """
    limit = unit.record(OwnLimit, permits.limit_key(unit.shard, permits.own_limit(spec)))
    others = permits.open_without_permit(unit, memory, keys.schedule_ref(spec.namespace, spec.name))
    return others if limit is None else (*others, *limit.holders)


def _settled(
    unit: UnitOfWork, memory: ShardCache, spec: ScheduleSpec, jobs: Sequence[Job], most: int, now: int
) -> overlap_rules.PolicyOutcome:
    if spec.overlap == "allow":
        return overlap_rules.PolicyOutcome()
    if spec.overlap == "skip":
        # Before its own instant in a flexible window an occurrence is not beside anything yet.
        jobs = [job for job in jobs if flexible_hold(spec, job, now) is None]
    holders = holders_of(unit, memory, spec)
    blockers = holders if len(holders) >= permits.own_limit(spec).max else ()
    return overlap_rules.apply_policy(spec, jobs, blockers, most)
