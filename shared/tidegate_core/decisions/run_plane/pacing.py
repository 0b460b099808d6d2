"""What makes up for missed instants goes one run at a time, so that an outage is followed by no herd (SEMANTICS 3.5).

A job's pending time-out counts from its turn: from its satisfaction all of them would expire, or be forced at once, while one
after another runs. A turn begins when no such run is open any more. It is one for all that wait then: when its time-out ends the
first of them it ends the others as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate_core.constraints.base import Hold
from tidegate_core.decisions.run_plane.memory import Memory
from tidegate_core.records.run_plane import Job


@dataclass(slots=True)
class Pacing:
    """One schedule's, while one decision goes through its jobs.

    Attributes:
        open_run: The run that makes up for the past, if one is open.
        turn: Deadline of the turn that jobs which this decision has ended leave to those behind them.
    """

    open_run: str | None
    turn: int | None = None

    @classmethod
    def of(cls, memory: Memory, ref: str) -> Pacing:
        if not any(memory.jobs[job_id].catch_up for job_id in memory.waiting(ref)):
            return cls(None)
        return cls(next((run.id for run in memory.runs_of(ref) if run.catch_up), None))

    def hold_of(self, job: Job) -> Hold | None:
        """Returns what holds the job back, if another one's turn goes on; it holds up nobody behind it."""
        if not job.catch_up or self.open_run is None:
            return None
        return Hold(None, "catch_up_pacing", f"what was missed runs one at a time, {self.open_run} is open")

    def in_turn(self, job: Job, pending_timeout: int, now: int) -> Job:
        """Returns the job in its turn, with the deadline of that."""
        if job.times_out:
            return job
        # One that has come since the turn began has waited for less than the others: it has its own time.
        return replace(
            job, in_turn=True, deadline=now + pending_timeout if self.turn is None else max(self.turn, job.deadline)
        )

    def note_end(self, job: Job, *, has_run: bool) -> None:
        """A job that was in its turn is admitted, or has ended."""
        if job.catch_up and has_run:
            self.open_run = job.id
        elif job.catch_up:
            self.turn = job.deadline
