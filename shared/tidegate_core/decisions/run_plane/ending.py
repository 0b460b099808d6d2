"""What is pending under an older generation ends, a page at a time, before a request is acknowledged (I7)."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.decisions.run_plane.answers import Outcome, answer
from tidegate_core.decisions.run_plane.jobs import end_evidence, end_job
from tidegate_core.decisions.run_plane.memory import Memory
from tidegate_core.decisions.run_plane.runs import BEFORE_GATE, close_run
from tidegate_core.model.receipts import Discarded, Receipt
from tidegate_core.model.requests import ScheduleRequest
from tidegate_core.records.codec import from_item
from tidegate_core.records.run_plane import Evidence, Job, Run, ScheduleState
from tidegate_core.store import keys
from tidegate_core.store.values import Key
from tidegate_core.transactions.unit_of_work import UnitOfWork

ENDED_PER_PAGE = 6
"""Pending things that one transaction ends: a run before the gate takes up to nine actions."""
LISTED_MAX = 1_000
"""Things that a receipt lists by name: 40 KB of ids, well below an item's 400 KB. The ledger has them all."""


def end(unit: UnitOfWork, pending: Run | Job | Evidence, reason: str, now: int) -> None:
    """Ends something that has not passed the gate."""
    match pending:
        case Run():
            close_run(unit, pending, "cancelled", reason, now)
        case Job():
            end_job(unit, pending, "cancelled", reason, now)
        case Evidence():
            end_evidence(unit, pending, now)


@dataclass(frozen=True, slots=True)
class EndPending:
    """Ends a page of what is pending and adds it to the stored answer; the last page settles the answer.

    Attributes:
        receipt: The answer as it stands before this page.
    """

    request: ScheduleRequest
    receipt: Receipt
    reason: str
    memory: Memory
    outcome: Outcome
    name: str = "end_pending"

    @property
    def about(self) -> str:
        return keys.schedule_ref(self.request.namespace, self.request.name)

    @property
    def stale(self) -> tuple[Key, ...]:
        """Runs: the gate may have let one pass since it was read."""
        return self._run_keys()

    def decide(self, unit: UnitOfWork, now: int) -> None:
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, self.request.namespace, self.request.name))
        assert state is not None
        runs = self._runs(unit, state)
        waiting = [run for run in runs if run.state in BEFORE_GATE]
        pending: list[Run | Job | Evidence] = [*waiting, *self._jobs(unit, state), *self._evidence(unit, state)]
        page = pending[:ENDED_PER_PAGE]
        jobs: list[str] = []
        evidence: dict[str, int] = {}
        for each in page:
            end(unit, each, self.reason, now)
            if isinstance(each, Run | Job):
                jobs.append(each.id)
            else:
                evidence[each.correlation] = sum(each.counts)
        running = [run.id for run in runs if run.state not in BEFORE_GATE]
        grown = self._grown(jobs, evidence, running, now)
        answer(unit, self.outcome, grown, now, settled=len(page) == len(pending))

    def _grown(self, jobs: list[str], evidence: dict[str, int], running: list[str], now: int) -> Receipt:
        before = self.receipt.discarded or Discarded()
        discarded = Discarded.model_construct(
            jobs=(*before.jobs, *jobs)[:LISTED_MAX],
            evidence=dict(list({**before.evidence, **evidence}.items())[:LISTED_MAX]),
        )
        return self.receipt.model_copy(
            update={"discarded": discarded, "running": tuple(running[:LISTED_MAX]), "at": now}
        )

    def _run_keys(self) -> tuple[Key, ...]:
        ref = self.about
        return tuple(keys.run(self.memory.shard, run.id) for run in self.memory.runs_of(ref))

    def _runs(self, unit: UnitOfWork, state: ScheduleState) -> list[Run]:
        runs = [from_item(Run, item) for item in unit.items(self._run_keys()) if item is not None]
        # After a crash between two pages the new version may have runs already: they are none of this request's.
        return [run for run in runs if run.generation < state.generation]

    def _jobs(self, unit: UnitOfWork, state: ScheduleState) -> list[Job]:
        """Returns the first ones, enough to tell whether this page is the last: there may be thousands."""
        waiting = [job for job in self.memory.jobs_of(self.about) if job.state == "pending_constraint"]
        older = [keys.job(unit.shard, job.id) for job in waiting if job.generation < state.generation]
        jobs = [from_item(Job, item) for item in unit.items(older[: ENDED_PER_PAGE + 1]) if item is not None]
        return [job for job in jobs if job.state == "pending_constraint"]

    def _evidence(self, unit: UnitOfWork, state: ScheduleState) -> list[Evidence]:
        """Evidence of jobs that ended on this page goes with them, so only what no job has yet is left here."""
        ref = self.about
        items = unit.range(f"E#{ref}#", f"E#{ref}#{keys.LAST}")
        found = [from_item(Evidence, item) for item in items]
        return [each for each in found if not each.job and (each.version < state.version or state.status != "active")]
