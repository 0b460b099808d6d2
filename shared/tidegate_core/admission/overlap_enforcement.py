"""Applies the overlap policy to a schedule's waiting or parked jobs.

`admit.py` calls this after it has admitted the jobs that can start. It selects the jobs to judge, applies the policy
(`overlap_rules.py`) and writes the jobs that end or stand for others.
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
    """Ends some of a schedule's jobs, as their overlap policy says; returns whether there was a job to end.

    Each version's policy judges the jobs of that version only. So jobs of an old version that an update lets finish are
    not judged together with new ones.

    Args:
        unit: Unit of work of this decision.
        memory: Cache that knows the open runs.
        jobs: All waiting jobs, in order, as the schedule's state makes them.
        most: Number of jobs that may end.
        now: The present.
        ends: Callback for each job that is about to end.
        parked: Whether the schedule is held: no run starts, and the parked jobs stay within `max_pending`.
        only_asks: Whether to end no job, because the decision already has enough to write.

    Raises:
        TooLarge: Another decision of this transaction has written one of the jobs.
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
    """Returns the open runs that overlap counts, also runs that were admitted without a limit.

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
        # Before its instant in a flexible window a job cannot overlap with a run.
        jobs = [job for job in jobs if flexible_hold(spec, job, now) is None]
    holders = holders_of(unit, memory, spec)
    blockers = holders if len(holders) >= permits.own_limit(spec).max else ()
    return overlap_rules.apply_policy(spec, jobs, blockers, most)
