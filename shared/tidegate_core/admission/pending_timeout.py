"""Pending time-out: what happens to a job that has waited for its constraints as long as its schedule allows.

It also holds the catch-up throttle, because the time-out of a catch-up job counts from its turn. Called by `admit.py`.
It writes only the end of an expired job.

Catch-up jobs run one at a time, so that an outage does not cause a burst of runs. If their time-outs counted from their
satisfaction, all would expire or be forced at once while one after another runs. A run that waits for its next attempt
stays open. Another catch-up run started then would run concurrently with that attempt.

A turn begins when no catch-up run is open. All catch-up jobs that wait then share it: when the time-out ends the first
job, it ends the others too. A job of a later outage is not ended before it has waited as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, assert_never

from tidegate_core.admission.eligibility import Blocker, unmet_text
from tidegate_core.language.constraints.constraint import Hold
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import Notice
from tidegate_core.rows.job import Job
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.run import awaits_retry
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard.jobs import end_job
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS, served_deadline, without_span
from tidegate_core.shard.schedule_state import last_stops
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.unit_of_work import UnitOfWork


class Late(NamedTuple):
    """A job after its time-out was checked.

    Attributes:
        unmet: Blockers that remain.
        has_ended: Whether the job has expired.
        is_forced: Whether the job starts as soon as its `concurrency` limits permit, and ignores all other constraints.
    """

    job: Job
    unmet: list[Blocker]
    has_ended: bool = False
    is_forced: bool = False


def served_until(state: ScheduleState, job: Job, outages: Sequence[Outage]) -> int:
    """Returns when the job's time-out ends. Time without an owner of the shard does not count.

    The job's deadline already includes the schedule's suspended spans. A moment that is both suspended and unserved
    counts once.

    Args:
        state: State of the job's schedule.
        job: The job as the state makes it.
        outages: Recorded outages of the shard.
    """
    for begin, end in reversed(last_stops(state)):
        outages = without_span(outages, begin, end)
    return served_deadline(job.timed_since, job.deadline, outages)


def after_pending_timeout(
    unit: UnitOfWork, spec: ScheduleSpec, job: Job, unmet: Sequence[Blocker], deadline: int, now: int
) -> Late:
    """Returns the job as the decision should see it; unchanged before its time-out.

    Only the deadline (`served_until`) says that it has passed, so a successor decides the same without another row. A
    blocker may go away during a gap in service that is too short to be recorded as an outage. So within that span after
    the deadline a job without blockers does not expire. A job whose deadline passed earlier had waited behind other
    jobs. It expires although its blockers are gone now.
    """
    action = spec.pending_timeout_action
    if now < deadline or (not unmet and (action != "abort" or now < deadline + OUTAGE_GRACE_MS)):
        return Late(job, list(unmet))
    match action:
        case "abort":
            end_job(unit, job, "expired", "constraint_timeout", now, unmet_text(unmet, now) if unmet else None)
            return Late(job, list(unmet), has_ended=True)
        case "force":
            return _forced(job, unmet, now)
        case "alert":
            return _alerted(unit, job, unmet)
    assert_never(action)


def _forced(job: Job, unmet: Sequence[Blocker], now: int) -> Late:
    """Ignores all blockers except limits: exceeding a limit is never allowed."""
    limits = [each for each in unmet if each.is_limit]
    if limits:
        return Late(job, limits, is_forced=True)
    return Late(replace(job, forced=unmet_text(unmet, now)), [])


def _alerted(unit: UnitOfWork, job: Job, unmet: Sequence[Blocker]) -> Late:
    if job.alerted:
        return Late(job, list(unmet))
    reasons = "; ".join(each.hold.reason for each in unmet)
    unit.after(Notice("job_waits_too_long", {"job": job.id, "schedule": job.ref, "unmet": reasons}))
    return Late(replace(job, alerted=True), list(unmet))


@dataclass(slots=True)
class CatchUpThrottle:
    """Throttle of one schedule, while one decision goes through its jobs.

    Attributes:
        open_run: Catch-up run that is open, if any.
        pause: Text for the reason if that run waits for its next attempt.
        turn: Job ended by this decision whose turn, with its deadline, passes to the jobs after it.
    """

    open_run: str | None
    turn: Job | None = None
    pause: str = ""

    @classmethod
    def of(cls, memory: ShardCache, ref: str) -> CatchUpThrottle:
        if not any(memory.jobs[job_id].catch_up for job_id in memory.waiting(ref)):
            return cls(None)
        run = next((run for run in memory.runs_of(ref) if run.catch_up), None)
        if run is None:
            return cls(None)
        waits = f", and its attempt {run.attempt} begins at {format_instant(run.not_before)}"
        return cls(run.id, pause=waits if awaits_retry(run) else "")

    def hold_of(self, job: Job) -> Hold | None:
        """Returns the reason to hold the job while another catch-up run is open. It blocks no job after it."""
        if not job.catch_up or self.open_run is None:
            return None
        return Hold(None, "catch_up_pacing", f"what was missed runs one at a time, {self.open_run} is open{self.pause}")

    def start_turn(self, job: Job, pending_timeout: int, now: int) -> Job:
        """Returns the job in its turn, with the turn's deadline."""
        if job.times_out:
            return job
        # Before its turn a job has the deadline of a job that only its constraints delay.
        if self.turn is None:
            return replace(job, in_turn=True, deadline=now + pending_timeout, clock_start=now)
        if self.turn.deadline <= job.deadline:
            return replace(job, in_turn=True)
        start = max(job.timed_since, self.turn.timed_since)
        return replace(job, in_turn=True, deadline=self.turn.deadline, clock_start=start)

    def note_end(self, job: Job, *, has_run: bool) -> None:
        """A catch-up job in its turn was admitted or has ended."""
        if job.catch_up and has_run:
            self.open_run, self.pause = job.id, ""
        elif job.catch_up:
            self.turn = job
