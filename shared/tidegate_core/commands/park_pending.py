"""What `hold` and `freeze` do to what waits, a page at a time, before the suspend is acknowledged (I7, SEMANTICS 10).

A run that has not passed the gate goes back to be a job: its item is deleted, so that the gate refuses the attempt, and its
next attempt has a number of its own, which costs no try. A job leaves the queues of shared limits: a slot that is offered to
it would stand free for nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.commands.end_pending import ENDED_PER_PAGE, LISTED_MAX, PAGE_ACTIONS
from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.language.requests.requests import ScheduleRequest
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.runs.parked_runs import park_run
from tidegate_core.runs.run_completion import close_run
from tidegate_core.runs.run_lifecycle import BEFORE_GATE, is_as_seen, run_keys_of, runs_of
from tidegate_core.shard.limits.limit_queue_entry import leave
from tidegate_core.shard.schedule_state import clocks_stopped
from tidegate_core.shard.shard_cache import PENDING_CONSTRAINT, ShardCache
from tidegate_core.writes.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class ParkPending:
    """Parks a page of what waits; the last page settles the answer. Under `drain` it only tells what is running."""

    request: ScheduleRequest
    receipt: Receipt
    memory: ShardCache
    outcome: Outcome
    most: int | None = None
    name: str = "park"

    @property
    def about(self) -> str:
        return keys.schedule_ref(self.request.namespace, self.request.name)

    @property
    def stale(self) -> tuple[Key, ...]:
        """Runs: the gate may have let one pass since it was read."""
        return run_keys_of(self.memory, self.about)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, self.request.namespace, self.request.name))
        assert state is not None
        runs = runs_of(unit, self.stale, self.about)
        pending: list[Run | Job] = []
        if clocks_stopped(state):
            pending = [*(run for run in runs if run.state in BEFORE_GATE), *self._queued(unit)]
        done = 0
        for each in pending[: self.most or ENDED_PER_PAGE]:
            if unit.actions > PAGE_ACTIONS or (isinstance(each, Run) and not is_as_seen(unit, each)):
                break
            done += 1
            if isinstance(each, Run) and each.failure is not None:
                close_run(unit, each, "cancelled", "suspended", now)  # It has run: it is no job any more.
            elif isinstance(each, Run):
                park_run(unit, each, now, self.memory.outages)
            else:
                unit.put(leave(unit, each), each.key(unit.shard))
        # One that has reported its end runs no more, whoever is still to draw the conclusions.
        running = tuple(run.id for run in runs if run.state not in BEFORE_GATE and run.ended_at is None)[:LISTED_MAX]
        told = self.receipt.model_copy(update={"running": running, "at": now})
        answer(unit, self.outcome, told, now, settled=done == len(pending))

    def _queued(self, unit: UnitOfWork) -> list[Job]:
        """Returns the first ones, enough to tell whether this page is the last."""
        waiting = [job for job in self.memory.jobs_of(self.about) if job.asked and job.state == PENDING_CONSTRAINT]
        wanted = [keys.job(unit.shard, job.id) for job in waiting[: ENDED_PER_PAGE + 1]]
        found = [from_item(Job, item) for item in unit.items(wanted) if item is not None]
        return [job for job in found if job.asked and job.state == PENDING_CONSTRAINT]
