"""Overlap policies: decide which waiting jobs end, and which job stands for them. One function for each policy.

Pure: the input is the waiting jobs and the open runs. Jobs that can start are never judged here. `skip` acts when the
concurrency limit
is reached. The other policies bound the number of waiting jobs, for any blocker. Forced jobs are not judged.

A job that replaces another takes over its queue place and its pending time-out. Otherwise a short period would send
the newest job to the end of a long queue each time: no job would reach the front, and no job would time out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from tidegate_core.language.constraints import ConcurrencyConstraint, LimitRef
from tidegate_core.language.constraints.concurrency import MAX_OWN_PERMITS
from tidegate_core.language.definitions.run_policies import Overlap
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run

SETTLED_TOGETHER: Final = 10
"""Jobs that one transaction ends: each takes up to seven actions, with evidence and queue entries."""


class Ended(NamedTuple):
    """A job that ends without a run, as the ledger records it."""

    job: Job
    disposition: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """Result of a policy; the remaining jobs keep waiting.

    Attributes:
        ended: Jobs that end now; the next decision may end more.
        kept: New state of the job that replaces them; None if no job does.
    """

    ended: tuple[Ended, ...] = ()
    kept: Job | None = None


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """Input of a policy.

    Attributes:
        jobs: Waiting jobs in order, without the forced ones.
        blockers: Open runs of the schedule if the concurrency limit is reached; empty otherwise.
        most: Number of jobs that may end.
    """

    spec: ScheduleSpec
    jobs: Sequence[Job]
    blockers: Sequence[str]
    most: int = SETTLED_TOGETHER


def apply_policy(
    spec: ScheduleSpec, jobs: Sequence[Job], blockers: Sequence[str], most: int = SETTLED_TOGETHER
) -> PolicyOutcome:
    """Applies the schedule's overlap policy to its waiting jobs."""
    mine = [job for job in jobs if not job.force_overlap]
    return _POLICIES[spec.overlap](PolicyInput(spec, mine, blockers, most))


def settle_parked(spec: ScheduleSpec, jobs: Sequence[Job], most: int = SETTLED_TOGETHER) -> PolicyOutcome:
    """Applies the policy while the schedule is held: open runs do not count, and the backlog stays bounded.

    Policies without a queue are bounded too: a period of seconds would create thousands of jobs in a day.
    """
    mine = [job for job in jobs if not job.force_overlap]
    policy = _queue if spec.overlap in {"allow", "skip"} else _POLICIES[spec.overlap]
    return policy(PolicyInput(spec, mine, (), most))


# -- the policies ---------------------------------------------------------------------------------------------------------


def _allow(waiting: PolicyInput) -> PolicyOutcome:
    return PolicyOutcome()


def _skip(waiting: PolicyInput) -> PolicyOutcome:
    if not waiting.blockers:
        return PolicyOutcome()
    detail = f"still open: {', '.join(waiting.blockers)}"
    return PolicyOutcome(tuple(Ended(job, "skipped", "overlap", detail) for job in waiting.jobs[: waiting.most]))


def _keep_latest(waiting: PolicyInput) -> PolicyOutcome:
    """Also serves `cancel_running`, which in addition ends open runs (`to_cancel`).

    The latest job stays. Of the others, the newest end first. If `most` leaves some, these are older than all ended jobs,
    so they still run before the latest one. If the oldest ended first, the latest job, which takes the place of the ended
    jobs, would overtake the rest.
    """
    if len(waiting.jobs) < 2:
        return PolicyOutcome()
    *older, latest = sorted(waiting.jobs, key=_by_nominal)
    replaced = older[-waiting.most :]
    detail = f"replaced by {latest.id}"
    ended = tuple(Ended(job, "skipped", "replaced", detail) for job in replaced)
    return PolicyOutcome(ended, _in_place_of(latest, replaced))


def _coalesce(waiting: PolicyInput) -> PolicyOutcome:
    return _merged(waiting.jobs, waiting.most, "overlap")


def _queue(waiting: PolicyInput) -> PolicyOutcome:
    surplus = len(waiting.jobs) - waiting.spec.max_pending
    if surplus <= 0:
        return PolicyOutcome()
    most = min(surplus, waiting.most)
    if waiting.spec.on_overflow == "coalesce":
        return _merged(waiting.jobs, most, "max_pending")
    detail = f"{waiting.spec.max_pending} jobs of the schedule wait already"
    # A catch-up job does not displace an on-time job in a full queue.
    newest = sorted(waiting.jobs, key=lambda job: (bool(job.catch_up), *_by_nominal(job)))[-most:]
    return PolicyOutcome(tuple(Ended(job, "skipped", "max_pending", detail) for job in newest))


_POLICIES: Final[Mapping[Overlap, Callable[[PolicyInput], PolicyOutcome]]] = {
    "allow": _allow,
    "skip": _skip,
    "keep_latest": _keep_latest,
    "cancel_running": _keep_latest,
    "coalesce": _coalesce,
    "queue": _queue,
}


def _merged(jobs: Sequence[Job], most: int, reason: str) -> PolicyOutcome:
    """Merges the newest jobs with adjoining data into the last of them, which then stands for all of them.

    Only jobs of a time trigger are merged. Evidence belongs to one job, and a manual run was requested for that very
    job. The newest jobs are merged first, so that the merged job covers an unbroken range even if `most` stops this
    early.
    """
    of_time = sorted((job for job in jobs if job.trigger == "time"), key=_by_nominal)
    unbroken = _newest_unbroken(of_time)
    if not unbroken:
        return PolicyOutcome()
    latest, merged = unbroken[-1], unbroken[:-1][-most:]
    return PolicyOutcome(tuple(merged_into(latest, job, reason) for job in merged), merged_job(latest, merged))


def _newest_unbroken(jobs: Sequence[Job]) -> Sequence[Job]:
    """Returns the newest jobs whose data intervals adjoin, in order; empty if there are fewer than two."""
    end = len(jobs)
    for begin in range(end - 1, -1, -1):
        if begin == 0 or not _adjoin(jobs[begin - 1], jobs[begin]):
            if end - begin > 1:
                return jobs[begin:end]
            end = begin
    return ()


def _adjoin(job: Job, following: Job) -> bool:
    """Whether the data of the second job begin at or before the end of the first. Jobs without a data interval always
    adjoin.
    """
    if job.interval_end is None or following.interval_start is None:
        return True
    return following.interval_start <= job.interval_end


def merged_job(latest: Job, merged: Sequence[Job]) -> Job:
    """Returns the latest job as it stands for all of these: with their data interval and their queue place."""
    together = [*merged, latest]
    starts = [job.interval_start for job in together if job.interval_start is not None]
    return replace(
        _in_place_of(latest, merged),
        covered=sum(job.stands_for for job in together),
        covered_from=min(job.begins for job in together),
        interval_start=min(starts, default=None),
    )


def merged_into(latest: Job, job: Job, reason: str) -> Ended:
    """Returns how a job ends that another job stands for."""
    return Ended(job, "coalesced", reason, f"into {latest.id}")


def _by_nominal(job: Job) -> tuple[int, str]:
    return job.nominal, job.id


def _in_place_of(latest: Job, others: Sequence[Job]) -> Job:
    """Returns the job with the queue place of the replaced jobs, and with the earliest of their deadlines.

    If a catch-up job replaced an on-time job, the occurrence would drop to class `low`. So a job that stands for an
    on-time job is on time. The waiting time of catch-up jobs in their lower class does not count for a place in a
    higher class.

    The job keeps its own satisfaction time, because delays count from it. Deadlines are compared on the schedule's
    clock. The earliest deadline keeps its start instant, because outages since then extend it, even if the queue place
    is younger.
    """
    together = [*others, latest]
    on_time = [job for job in together if not job.catch_up]
    timed = min((job for job in together if job.times_out or job is latest), key=lambda job: job.deadline - job.stopped)
    takes_a_turn = not on_time and any(job.times_out for job in others)
    return replace(
        latest,
        catch_up=None if on_time else True,
        queued_since=min(job.waits_since for job in on_time or together),
        deadline=timed.deadline - timed.stopped + latest.stopped,
        clock_start=timed.timed_since,
        in_turn=None if on_time else takes_a_turn or latest.in_turn,
        alerted=any(job.alerted for job in together) or None,
    )


# -- runs and limits ------------------------------------------------------------------------------------------------------


def to_cancel(job: Job, most: int, holders: Sequence[str], runs: Mapping[str, Run]) -> list[str]:
    """Returns the runs that must end so that the job can run, oldest first, without the runs that are already ending.

    A run ends only for a job of the same or a later instant. Otherwise a catch-up job would end a later on-time run.

    Args:
        job: Waiting job that needs a permit.
        most: Number of runs that may be open.
        holders: Open runs in the order of their admission.
        runs: Known state of these runs.
    """
    lasting = [run_id for run_id in holders if run_id in runs and not _is_ending(runs[run_id])]
    ending = len(holders) - len(lasting)
    older = [run_id for run_id in lasting if runs[run_id].nominal <= job.nominal]
    return older[: max(len(holders) - most + 1 - ending, 0)]


def _is_ending(run: Run) -> bool:
    return run.cancel_requested or run.ended_at is not None


def limits_for(job: Job, spec: ScheduleSpec, limits: Sequence[LimitRef]) -> tuple[LimitRef, ...]:
    """Returns the limits, with the overlap limit widened for a forced job: its run counts, but the job does not wait.

    A limit that a constraint names also holds for a forced job.
    """
    named = any(isinstance(each, ConcurrencyConstraint) and each.scope == "schedule" for each in spec.constraints)
    if not job.force_overlap or named:
        return tuple(limits)
    return tuple(replace(each, max=MAX_OWN_PERMITS) if each.scope == "schedule" else each for each in limits)


__all__ = [
    "SETTLED_TOGETHER",
    "Ended",
    "PolicyOutcome",
    "apply_policy",
    "limits_for",
    "merged_into",
    "merged_job",
    "to_cancel",
]
