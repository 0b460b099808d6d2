"""Page that ends pending work of older generations, or binds it to the new version, before a request is acknowledged (I7).

Without binding, hourly deploys would lose due runs that wait for a time window or another constraint. So under `keep_due` a job of a time
trigger becomes a job of the new version, and so does a run before the start gate that a time trigger made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice

from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.language.requests.receipts import Discarded, Receipt
from tidegate_core.language.requests.requests import ScheduleDelete, ScheduleRequest
from tidegate_core.language.values.states import KEEPS_DUE, OnUpdate
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.runs.run_completion import close_run, park_run
from tidegate_core.runs.run_lifecycle import BEFORE_GATE, RequestCancel, is_as_seen, run_keys_of, runs_of
from tidegate_core.shard.jobs import end_evidence, end_job, expire_evidence, seal
from tidegate_core.shard.schedule_state import is_of_ended_generation, keeps_pending, oldest_kept_generation, spec_of
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.unit_of_work import UnitOfWork

UPSTREAM_DELETED = "upstream_deleted"
"""Reason in the ledger if an upstream schedule was deleted. No user asked for that and no receipt reports it, so the ledger also has an entry for
evidence."""
ENDED_PER_PAGE = 6
"""Pending items that one transaction ends: a run before the start gate takes up to eleven actions, and two for each of its limits."""
PAGE_ACTIONS = 45
"""A page with more actions takes no further item. A run with 16 limits takes up to 43, and the answer takes a few; DynamoDB allows 100."""
LISTED_MAX = 1_000
"""Items that a receipt lists by name: 40 KB of ids, well below the 400 KB of a store item. The ledger has all of them."""
LISTED_BYTES_MAX = 100_000
"""Bytes of the values by which a receipt lists evidence: the name of a data partition has up to 1 KB, and more as JSON."""


def end(unit: UnitOfWork, pending: Run | Job | Evidence, reason: str, now: int, detail: str = "") -> None:
    """Ends a pending item that has not passed the start gate."""
    match pending:
        case Run():
            close_run(unit, pending, "cancelled", reason, now)
        case Job():
            end_job(unit, pending, "cancelled", reason, now)
        case Evidence():
            if reason == UPSTREAM_DELETED:
                expire_evidence(unit, pending, detail, reason, now)
            end_evidence(unit, pending, now)


@dataclass(frozen=True, slots=True)
class EndPending:
    """Ends a page of pending work and adds it to the stored answer; the last page settles the answer.

    Attributes:
        receipt: Answer before this page.
        most: Items that the page ends at most; None: a page of the usual size.
        keeps: Value of `on_update`, which says which jobs and runs stay.
    """

    request: ScheduleRequest
    receipt: Receipt
    reason: str
    memory: ShardCache
    outcome: Outcome
    most: int | None = None
    keeps: OnUpdate = "restart"
    name: str = "end_pending"

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
        runs = self._runs(unit, state)
        waiting = [run for run in runs if run.state in BEFORE_GATE]
        asked = [run for run in runs if self.cancels(run)]
        page = self.most or ENDED_PER_PAGE
        # One more than fits shows whether this page is the last: there may be thousands of evidence rows.
        pending: list[Run | Job | Evidence] = list(
            islice(chain(waiting, self._jobs(unit, state), self._evidence(unit, state), asked), page + 1)
        )
        jobs: list[str] = []
        evidence: dict[str, int] = {}
        done = 0
        for each in pending[:page]:
            if unit.actions > PAGE_ACTIONS or (isinstance(each, Run) and not is_as_seen(unit, each)):
                break
            done += 1
            if isinstance(each, Run) and each.state not in BEFORE_GATE:
                RequestCancel(unit.shard, each.id).decide(unit, now)
            elif isinstance(each, Evidence) and each.job:
                seal(unit, each)
            elif not isinstance(each, Evidence) and self._stays(unit, state, each):
                self._bind(unit, state, each, now)
            else:
                end(unit, each, self.reason, now, self.request.reason or "")
                if isinstance(each, Run | Job):
                    jobs.append(each.id)
                else:
                    evidence[each.correlation] = sum(each.counts)
        # A run that has reported its end is over, even before the owner completes it: no attempt follows in a new generation.
        going_on = [run.id for run in runs if run.state not in BEFORE_GATE and run.ended_at is None]
        running = tuple(going_on)[:LISTED_MAX]
        told = grown(self.receipt, jobs, evidence, running, now)
        answer(unit, self.outcome, told, now, settled=done == len(pending))

    def cancels(self, run: Run) -> bool:
        """Whether the request asks for the end of a run that would go on otherwise."""
        wanted = isinstance(self.request, ScheduleDelete) and self.request.cancel_running
        return wanted and run.state not in BEFORE_GATE and run.ended_at is None and not run.cancel_requested

    def _stays(self, unit: UnitOfWork, state: ScheduleState, pending: Run | Job) -> bool:
        """Whether a job, or a run before the start gate, goes on under the new generation.

        Work of a former incarnation ends, and so does work that a scope suspension drops. A run that waits for a retry ends too: it has run, so
        it cannot become a job again.
        """
        if self.keeps not in KEEPS_DUE or pending.incarnation != state.incarnation:
            return False
        if unit.drops(pending.namespace, pending.satisfied_at):
            return False
        if isinstance(pending, Run) and pending.failure is not None:
            return False
        spec = spec_of(unit, state.namespace, state.name, state.version)
        if spec is None or not spec.target_rules.makes_jobs:
            return False
        return pending.trigger == "time" or (isinstance(pending, Run) and self.keeps == "finish_admitted")

    def _bind(self, unit: UnitOfWork, state: ScheduleState, pending: Run | Job, now: int) -> None:
        """Binds a job or a run to the new generation. A run becomes a job of the new version, unless it is to start as it was admitted."""
        key = keys.job(unit.shard, pending.id)
        if isinstance(pending, Run) and self.keeps == "finish_admitted":
            unit.put(replace(pending, generation=state.generation), pending.key(unit.shard))
            job = unit.record(Job, key)
            assert job is not None
            unit.put(replace(job, generation=state.generation), key)
            return
        if isinstance(pending, Run):
            park_run(unit, pending, now, self.memory.outages)
        job = unit.record(Job, key)
        assert job is not None
        unit.put(replace(job, version=state.version, generation=state.generation), key)
        unit.after(lambda: self.memory.hold(self.about, now))

    def _runs(self, unit: UnitOfWork, state: ScheduleState) -> list[Run]:
        runs = runs_of(unit, self.stale, self.about)
        # After a crash between two pages the new version may have runs already. This request does not touch them.
        return [run for run in runs if run.generation < oldest_kept_generation(state)]

    def _jobs(self, unit: UnitOfWork, state: ScheduleState) -> list[Job]:
        """Returns the first jobs, one more than fits on a page, to tell whether this page is the last. There may be thousands."""
        waiting = [job for job in self.memory.jobs_of(self.about) if job.state == "pending_constraint"]
        older = [keys.job(unit.shard, job.id) for job in waiting if job.generation < oldest_kept_generation(state)]
        jobs = [from_item(Job, item) for item in unit.items(older[: ENDED_PER_PAGE + 1]) if item is not None]
        return [job for job in jobs if job.state == "pending_constraint"]

    def _evidence(self, unit: UnitOfWork, state: ScheduleState) -> Iterator[Evidence]:
        """Returns evidence to end: evidence without a job, and evidence of jobs that go on under another version and absorb no more events.

        Evidence of a job that ends on this page ends with the job.
        """
        ref = self.about
        items = unit.range(f"{keys.EVIDENCE_PREFIX}{ref}#", f"{keys.EVIDENCE_PREFIX}{ref}#{keys.LAST}")
        found = (from_item(Evidence, item) for item in items)
        past = (each for each in found if not keeps_pending(state) or is_of_ended_generation(state, each))
        return (each for each in past if not each.job or self._goes_on(state, each))

    def _goes_on(self, state: ScheduleState, evidence: Evidence) -> bool:
        job = self.memory.jobs.get(evidence.id)
        return job is not None and job.state == "pending_constraint" and job.generation >= oldest_kept_generation(state)


def grown(
    receipt: Receipt, jobs: Sequence[str], evidence: Mapping[str, int], running: Sequence[str], now: int
) -> Receipt:
    """Returns the answer with the items that one more page has ended."""
    before = receipt.discarded or Discarded()
    discarded = Discarded.model_construct(
        jobs=(*before.jobs, *jobs)[:LISTED_MAX],
        evidence=_listed({**before.evidence, **evidence}),
        messages=before.messages,
    )
    return receipt.model_copy(update={"discarded": discarded, "running": tuple(running), "at": now})


def _listed(evidence: Mapping[str, int]) -> dict[str, int]:
    sizes = accumulate(len(json.dumps(value, ensure_ascii=False).encode()) for value in evidence)
    fitting = sum(1 for size in islice(sizes, LISTED_MAX) if size <= LISTED_BYTES_MAX)
    return dict(islice(evidence.items(), fitting))
