"""What a resume does after `hold` and `freeze`, a page at a time: the backlog is cut, and time-outs run on (SEMANTICS 10).

Nothing is admitted before the backlog is what was asked for: a successor that looks at the waiting jobs first finds
`shedding` in the state. The backlog is all that waited when the resume moved the state, so a repeated page goes on with the same jobs, also one
that comes ten minutes later, when an update or another suspend has moved the state again. Which those are the instants tell, whoever's clock they
are by: `backlog_through` is no earlier than the last of them was satisfied, and what is made amid the pages is satisfied after that. No later request
but one that ends all of it takes the cut back: what a later resume says is about what this one leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice

from tidegate_core.admission.overlap_rules import merged_into, merged_job
from tidegate_core.commands.end_pending import ENDED_PER_PAGE, PAGE_ACTIONS, grown
from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.language.requests.requests import ScheduleRequest
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.jobs import end_job, evidence_ref
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
class ReleasePending:
    """Ends a page of the backlog that is not wanted, or sets time-outs going; the last page settles the answer."""

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
        # One more than fits tells whether this page is the last: of evidence there may be thousands.
        pending: list[Job | Evidence] = list(islice(chain(unwanted, self._standing(unit, state, now)), page + 1))
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
                _run_on(unit, state, each, now)
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
        """Returns the jobs that waited when the resume moved the state, in their order."""
        jobs = [
            job
            for job in self.memory.jobs_of(self.about)
            if job.state == PENDING_CONSTRAINT
            and job.generation >= oldest_kept_generation(state)
            and job.satisfied_at <= backlog_through(state)
        ]
        return sorted(jobs, key=lambda job: (job.nominal, job.id))

    def _standing(self, unit: UnitOfWork, state: ScheduleState, now: int) -> Iterator[Evidence]:
        """Returns evidence whose time-out stands where it stood when the schedule was suspended."""
        if clocks_stopped(state):
            return iter(())  # Suspended anew before the last page: no row that is written now would stay right.
        total = stopped(state, now)
        items = unit.range(f"{keys.EVIDENCE_PREFIX}{self.about}#", f"{keys.EVIDENCE_PREFIX}{self.about}#{keys.LAST}")
        # What a page before has moved is passed by each page: it is not even unpacked.
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
    """What somebody has asked for by hand is no backlog of the trigger, unless all of it is to go."""
    if state.shedding is None:
        return []
    if state.shedding == "none":
        return backlog
    # The newest first: the instants in between are all the survivor's own, however many pages it takes.
    return [job for job in reversed(backlog) if is_cut(state, job) or (job.trigger == "time" and job is not survivor)]


def _run_on(unit: UnitOfWork, state: ScheduleState, evidence: Evidence, now: int) -> None:
    """Moves a time-out by how long the clocks stood still."""
    ref = evidence_ref(evidence.namespace, evidence.name, evidence.correlation)
    moved = present_evidence(state, evidence, now)
    assert moved.deadline is not None
    assert evidence.deadline is not None
    unit.forget_row(keys.timer(unit.shard, evidence.deadline, keys.EVIDENCE_TIMER, ref))
    row = TimerRow(at=moved.deadline, kind=keys.EVIDENCE_TIMER, ref=ref, detail=evidence.correlation)
    unit.set_row(row, row.key(unit.shard))
    unit.put(moved, evidence.key(unit.shard))
