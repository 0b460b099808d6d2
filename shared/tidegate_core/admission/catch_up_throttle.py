"""What makes up for missed instants goes one run at a time, so that an outage is followed by no herd (SEMANTICS 3.5).

A job's pending time-out counts from its turn: from its satisfaction all of them would expire, or be forced at once, while one
after another runs. A run that waits for its next attempt is open as ever (SEMANTICS 4): another one beside it would be a second as soon
as it goes on. A turn begins when no such run is open any more. It is one for all that wait then: when its time-out ends the first of
them it ends the others as well, but none that came later, of another outage, before it has waited as long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate_core.language.constraints.constraint import Hold
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import awaits_retry
from tidegate_core.shard.shard_cache import ShardCache


@dataclass(slots=True)
class CatchUpThrottle:
    """One schedule's, while one decision goes through its jobs.

    Attributes:
        open_run: The run that makes up for the past, if one is open.
        pause: What is to be said of it where it waits for its next attempt.
        turn: Deadline of the turn that jobs which this decision has ended leave to those behind them.
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
        """Returns what holds the job back, if another one's turn goes on; it holds up nobody behind it."""
        if not job.catch_up or self.open_run is None:
            return None
        return Hold(None, "catch_up_pacing", f"what was missed runs one at a time, {self.open_run} is open{self.pause}")

    def start_turn(self, job: Job, pending_timeout: int, now: int) -> Job:
        """Returns the job in its turn, with the deadline of that."""
        if job.times_out:
            return job
        # Until its turn its deadline is that of a job which nothing but its constraints keeps waiting.
        if self.turn is None:
            return replace(job, in_turn=True, deadline=now + pending_timeout, clock_start=now)
        if self.turn.deadline <= job.deadline:
            return replace(job, in_turn=True)
        start = max(job.timed_since, self.turn.timed_since)
        return replace(job, in_turn=True, deadline=self.turn.deadline, clock_start=start)

    def note_end(self, job: Job, *, has_run: bool) -> None:
        """A job that was in its turn is admitted, or has ended."""
        if job.catch_up and has_run:
            self.open_run, self.pause = job.id, ""
        elif job.catch_up:
            self.turn = job
