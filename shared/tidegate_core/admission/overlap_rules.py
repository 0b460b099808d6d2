"""Overlap: what becomes of a schedule's jobs that have to wait, one function for each word (SEMANTICS 4).

Pure: given the jobs that wait and the runs that are open, which jobs end, and which one stands for others from now on. A job that
can go is never judged here. `skip` acts when as many runs are open as may be; the others keep what waits small, whatever it
waits for. Jobs that were forced are beside all of this.

A job that takes the place of another one takes its place in the queues as well, and its pending time-out: else a short period
would always send the newest to the end of a long queue, none would ever come to its turn, and none would wait too long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from tidegate_core.language.constraints import ConcurrencyConstraint, LimitRef
from tidegate_core.language.constraints.concurrency import MAX_OWN_PERMITS
from tidegate_core.language.definitions.overlap_policy import Overlap
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run

SETTLED_TOGETHER: Final = 10
"""Jobs that one transaction ends so: up to seven actions each, with evidence and places in queues."""


class Ended(NamedTuple):
    """A job that ends without a run, as the ledger has it."""

    job: Job
    disposition: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """What becomes of the jobs that wait; what is left of them waits on.

    Attributes:
        ended: Those that end now; further ones may follow at the next look.
        kept: The job that takes their place, as it is from now on; None when nobody takes it.
    """

    ended: tuple[Ended, ...] = ()
    kept: Job | None = None


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """What is to be judged.

    Attributes:
        jobs: Those that wait, in their order, without the forced ones.
        blockers: Runs of the schedule that are open, when they are as many as may be; else none.
        most: Jobs that may end.
    """

    spec: ScheduleSpec
    jobs: Sequence[Job]
    blockers: Sequence[str]
    most: int = SETTLED_TOGETHER


def apply_policy(
    spec: ScheduleSpec, jobs: Sequence[Job], blockers: Sequence[str], most: int = SETTLED_TOGETHER
) -> PolicyOutcome:
    """Returns what the schedule's overlap makes of its jobs that wait."""
    mine = [job for job in jobs if not job.force_overlap]
    return _POLICIES[spec.overlap](PolicyInput(spec, mine, blockers, most))


def settle_parked(spec: ScheduleSpec, jobs: Sequence[Job], most: int = SETTLED_TOGETHER) -> PolicyOutcome:
    """Returns the same while the schedule is held: what runs is nothing to do with it, and the backlog has its bound.

    Also under policies that know no queue: a period of seconds would make thousands of jobs in a day.
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
    """Also `cancel_running`, which beside that ends what runs (`to_cancel`).

    From the newest backwards: whoever is left when this stops waits before the one that takes the others' places. With the
    oldest first that one would overtake those, and they would run behind it.
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
    # A job that makes up for the past takes no on-time job's place in a full queue.
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
    """Merges jobs whose data adjoin into the last of them, which stands for all that they stood for: the newest that do.

    Only jobs of a time trigger: evidence belongs to one job, and who asked for a run by hand waits for that very one. From
    the newest backwards, so that the instants in between are all its own however often this stops.
    """
    of_time = sorted((job for job in jobs if job.trigger == "time"), key=_by_nominal)
    unbroken = _newest_unbroken(of_time)
    if not unbroken:
        return PolicyOutcome()
    latest, merged = unbroken[-1], unbroken[:-1][-most:]
    return PolicyOutcome(tuple(merged_into(latest, job, reason) for job in merged), merged_job(latest, merged))


def _newest_unbroken(jobs: Sequence[Job]) -> Sequence[Job]:
    """Returns the newest of these jobs, in their order, between whose data nothing lies that went by itself, if there are two."""
    end = len(jobs)
    for begin in range(end - 1, -1, -1):
        if begin == 0 or not _adjoin(jobs[begin - 1], jobs[begin]):
            if end - begin > 1:
                return jobs[begin:end]
            end = begin
    return ()


def _adjoin(job: Job, following: Job) -> bool:
    """Whether the data of the one begin where those of the other end; what has no data interval has no gap either."""
    if job.interval_end is None or following.interval_start is None:
        return True
    return following.interval_start <= job.interval_end


def merged_job(latest: Job, merged: Sequence[Job]) -> Job:
    """Returns the job as it stands for all that these stood for, with their data interval and their place in queues."""
    together = [*merged, latest]
    starts = [job.interval_start for job in together if job.interval_start is not None]
    return replace(
        _in_place_of(latest, merged),
        covered=sum(job.stands_for for job in together),
        covered_from=min(job.begins for job in together),
        interval_start=min(starts, default=None),
    )


def merged_into(latest: Job, job: Job, reason: str) -> Ended:
    """Returns how a job ends that another one stands for."""
    return Ended(job, "coalesced", reason, f"into {latest.id}")


def _by_nominal(job: Job) -> tuple[int, str]:
    return job.nominal, job.id


def _in_place_of(latest: Job, others: Sequence[Job]) -> Job:
    """Returns the job as it waits where the others waited, and no longer than they would have.

    An on-time job would become one of class `low` if a job that makes up for the past took its place. So what stands for an on-time job is
    on time. What makes up for the past has waited in a lower class: its waiting counts for no place in a higher one.

    When it was satisfied stays its own: a delay counts from that. Deadlines are compared on the schedule's clock. The earliest one comes with the
    instant from which it counts: an outage since then moves it, also where the place in queues is younger.
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
    """Returns the runs that have to end so that the job may run, the oldest first, less those that are ending.

    A job that makes up for the past would end what came on time after it. So no run ends for a job of an earlier instant.

    Args:
        job: It wants a place.
        most: Runs that may be open.
        holders: Those that are, in the order of their admission.
        runs: What is known of them.
    """
    lasting = [run_id for run_id in holders if run_id in runs and not _is_ending(runs[run_id])]
    ending = len(holders) - len(lasting)
    older = [run_id for run_id in lasting if runs[run_id].nominal <= job.nominal]
    return older[: max(len(holders) - most + 1 - ending, 0)]


def _is_ending(run: Run) -> bool:
    return run.cancel_requested or run.ended_at is not None


def limits_for(job: Job, spec: ScheduleSpec, limits: Sequence[LimitRef]) -> tuple[LimitRef, ...]:
    """Returns the limits with that of overlap widened for a job that was forced: it counts, but does not wait.

    A limit that a constraint names holds for it as for all others.
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
