"""Pages that follow a request on a schedule: its pending work ends, is parked or is released before the answer is settled (I7).

The procedure that applies the request asks for one page after the other, from stored rows alone. So a new owner continues after a crash.

`hold` and `freeze` park pending work. A run before the start gate becomes a job again: its row is deleted, so the gate refuses the attempt. The
next attempt has a new number and costs no try. A parked job leaves the queues of shared limits, because no offer may wait for it.

A resume cuts the backlog as it asks, and restarts stopped time-outs. No job is admitted before: `shedding` in the state stops every owner. The
backlog is all that waited when the resume moved the state. A repeated page finds the same jobs, even after an update or another suspend: all of
them were satisfied up to `backlog_through`, by whichever clock. Jobs that are made during the pages are satisfied later.
Only a request that ends the whole backlog takes the cut back; a later resume is about the jobs that this one leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice

from tidegate_core.admission.overlap_rules import merged_into, merged_job
from tidegate_core.commands.end_pending import ENDED_PER_PAGE, LISTED_MAX, PAGE_ACTIONS, EndPending, grown
from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.engine.decision import Decision
from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.language.requests.requests import (
    ScheduleApply,
    ScheduleDelete,
    ScheduleRequest,
    ScheduleResume,
    ScheduleSuspend,
)
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.runs.run_completion import close_run, park_run
from tidegate_core.runs.run_lifecycle import BEFORE_GATE, is_as_seen, run_keys_of, runs_of
from tidegate_core.shard.jobs import end_job, evidence_ref
from tidegate_core.shard.limits.limit_queue_entry import leave
from tidegate_core.shard.schedule_state import (
    backlog_through,
    clocks_stopped,
    is_cut,
    is_of_ended_generation,
    oldest_kept_generation,
    present_evidence,
    stopped,
)
from tidegate_core.shard.shard_cache import PENDING_CONSTRAINT, ShardCache
from tidegate_core.writes.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class ParkPending:
    """Parks a page of pending work; the last page settles the answer. Under `drain` it only reports the open runs."""

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
        """Keys of runs: a run may have passed the start gate since the cache read it."""
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
                close_run(
                    unit, each, "cancelled", "suspended", now
                )  # It has run once, so it cannot become a job again.
            elif isinstance(each, Run):
                park_run(unit, each, now, self.memory.outages)
            else:
                unit.put(leave(unit, each), each.key(unit.shard))
        # A run that has reported its end does not run any more, even before the owner completes it.
        running = tuple(run.id for run in runs if run.state not in BEFORE_GATE and run.ended_at is None)[:LISTED_MAX]
        told = self.receipt.model_copy(update={"running": running, "at": now})
        answer(unit, self.outcome, told, now, settled=done == len(pending))

    def _queued(self, unit: UnitOfWork) -> list[Job]:
        """Returns the first queued jobs, one more than fits on a page, to tell whether this page is the last."""
        waiting = [job for job in self.memory.jobs_of(self.about) if job.asked and job.state == PENDING_CONSTRAINT]
        wanted = [keys.job(unit.shard, job.id) for job in waiting[: ENDED_PER_PAGE + 1]]
        found = [from_item(Job, item) for item in unit.items(wanted) if item is not None]
        return [job for job in found if job.asked and job.state == PENDING_CONSTRAINT]


@dataclass(frozen=True, slots=True)
class ReleasePending:
    """Ends a page of the backlog that the resume leaves out, or restarts time-outs; the last page settles the answer."""

    request: ScheduleRequest
    receipt: Receipt
    memory: ShardCache
    outcome: Outcome
    most: int | None = None
    stale: tuple[Key, ...] = ()
    name: str = "release"

    @property
    def about(self) -> str:
        return keys.schedule_ref(self.request.namespace, self.request.name)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        key = keys.schedule_state(unit.shard, self.request.namespace, self.request.name)
        state = unit.record(ScheduleState, key)
        assert state is not None
        backlog = self._backlog(state)
        survivor = _survivor(state, backlog)
        unwanted = _unwanted(state, backlog, survivor)
        page = self.most or ENDED_PER_PAGE
        # One more than fits shows whether this page is the last: there may be thousands of evidence rows.
        pending: list[Job | Evidence] = list(
            islice(chain(unwanted, self._stopped_evidence(unit, state, now)), page + 1)
        )
        ended: list[Job] = []
        done = 0
        for each in pending[:page]:
            if unit.actions > PAGE_ACTIONS:
                break
            done += 1
            if isinstance(each, Job):
                ended.append(each)
                _end(unit, state, each, survivor, now)
            else:
                _restart_timeout(unit, state, each, now)
        merged = [job for job in ended if not is_cut(state, job)]
        if merged and survivor is not None and state.shedding == "coalesce":
            unit.put(merged_job(survivor, merged), survivor.key(unit.shard))
        receipt = grown(self.receipt, [job.id for job in ended], {}, self.receipt.running, now)
        is_last = done == len(pending)
        if is_last:
            receipt = receipt.model_copy(update={"backlog": (receipt.backlog or 0) + len(backlog) - len(unwanted)})
            if state.shedding is not None:
                unit.put(replace(state, shedding=None, cut_through=None), key)
            unit.after(lambda: self.memory.hold(self.about, now))
        answer(unit, self.outcome, receipt, now, settled=is_last)

    def _backlog(self, state: ScheduleState) -> list[Job]:
        """Returns the jobs that waited when the resume moved the state, oldest first."""
        jobs = [
            job
            for job in self.memory.jobs_of(self.about)
            if job.state == PENDING_CONSTRAINT
            and job.generation >= oldest_kept_generation(state)
            and job.satisfied_at <= backlog_through(state)
        ]
        return sorted(jobs, key=lambda job: (job.nominal, job.id))

    def _stopped_evidence(self, unit: UnitOfWork, state: ScheduleState, now: int) -> Iterator[Evidence]:
        """Returns evidence whose time-out is still stopped since the suspend."""
        if clocks_stopped(state):
            return iter(
                ()
            )  # The schedule is suspended again before the last page: a time-out written now would be wrong.
        total = stopped(state, now)
        items = unit.range(f"{keys.EVIDENCE_PREFIX}{self.about}#", f"{keys.EVIDENCE_PREFIX}{self.about}#{keys.LAST}")
        # Each page passes the rows that earlier pages have moved, and does not even decode them.
        found = (from_item(Evidence, item) for item in items if item.get("stopped", 0) != total)
        return (
            each
            for each in found
            if each.deadline is not None and not each.job and not is_of_ended_generation(state, each)
        )


def _end(unit: UnitOfWork, state: ScheduleState, job: Job, survivor: Job | None, now: int) -> None:
    if state.shedding == "coalesce" and survivor is not None and not is_cut(state, job):
        ended = merged_into(survivor, job, "backlog")
        end_job(unit, job, ended.disposition, ended.reason, now, ended.detail)
    else:
        end_job(unit, job, "cancelled", "suspended", now)


def _survivor(state: ScheduleState, backlog: list[Job]) -> Job | None:
    timed = [job for job in backlog if job.trigger == "time" and not is_cut(state, job)]
    return timed[-1] if timed and state.shedding in {"last", "coalesce"} else None


def _unwanted(state: ScheduleState, backlog: list[Job], survivor: Job | None) -> list[Job]:
    """Returns the jobs to end. A job that a user fired by hand is no backlog of the trigger; only `none` ends it too."""
    if state.shedding is None:
        return []
    if state.shedding == "none":
        return backlog
    # Newest first: so the survivor covers the instants in between, however many pages it takes.
    return [job for job in reversed(backlog) if is_cut(state, job) or (job.trigger == "time" and job is not survivor)]


def _restart_timeout(unit: UnitOfWork, state: ScheduleState, evidence: Evidence, now: int) -> None:
    """Moves a time-out by the time for which the clocks were stopped."""
    ref = evidence_ref(evidence.namespace, evidence.name, evidence.correlation)
    moved = present_evidence(state, evidence, now)
    assert moved.deadline is not None
    assert evidence.deadline is not None
    unit.forget_row(keys.timer(unit.shard, evidence.deadline, keys.EVIDENCE_TIMER, ref))
    row = TimerRow(at=moved.deadline, kind=keys.EVIDENCE_TIMER, ref=ref, detail=evidence.correlation)
    unit.set_row(row, row.key(unit.shard))
    unit.put(moved, evidence.key(unit.shard))


ENDED_BY: Mapping[type[ScheduleRequest], str] = {
    ScheduleApply: "superseded",
    ScheduleDelete: "schedule_deleted",
    ScheduleSuspend: "suspended",
}
"""Reason in the ledger, by the request that ends an occurrence."""
LEAVES_INDEX = frozenset(ENDED_BY)
"""Requests that end the subscriptions of earlier generations."""


def page_of(
    request: ScheduleRequest, state: ScheduleState, memory: ShardCache, outcome: Outcome, most: int | None = None
) -> Decision:
    """Returns the next page from stored rows alone, so that a new owner continues after a crash.

    Args:
        request: Request that moved the state; a suspend names its mode.
        state: Present state of the schedule.
        memory: Cache of the shard.
        outcome: Progress of the request.
        most: Items on the page; None: a page of the usual size.
    """
    receipt = outcome.receipt
    assert receipt is not None
    if isinstance(request, ScheduleResume):
        return ReleasePending(request, receipt, memory, outcome, most)
    # A drop ends its pending work even if another suspend has given the state another mode since.
    if isinstance(request, ScheduleSuspend) and "drop" not in (state.mode, request.mode):
        return ParkPending(request, receipt, memory, outcome, most)
    keeps = (request.on_update or request.spec.on_update) if isinstance(request, ScheduleApply) else "restart"
    return EndPending(request, receipt, ENDED_BY[type(request)], memory, outcome, most, keeps)
