"""What is pending under an older generation ends, or is bound to the new version, a page at a time, before a request is acknowledged (I7).

An update must not lose a due occurrence: hourly deploys would lose runs that wait for their place in a window, or for a constraint. So
under `keep_due` a job of a time trigger, and a run of one before the gate, goes on as a job of the new version (SEMANTICS 12.4).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice

from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.language.requests.receipts import Discarded, Receipt
from tidegate_core.language.requests.requests import ScheduleDelete, ScheduleRequest
from tidegate_core.language.values.pending_modes import KEEPS_DUE, OnUpdate
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.runs.parked_runs import park_run
from tidegate_core.runs.run_completion import close_run
from tidegate_core.runs.run_lifecycle import BEFORE_GATE, RequestCancel, is_as_seen, run_keys_of, runs_of
from tidegate_core.shard.jobs import end_evidence, end_job, expire_evidence, seal
from tidegate_core.shard.schedule_state import is_of_ended_generation, keeps_pending, oldest_kept_generation, spec_of
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.unit_of_work import UnitOfWork

UPSTREAM_DELETED = "upstream_deleted"
"""Reason of what ends because a schedule that it waits for was deleted. Nobody asked for that, and nobody is answered: evidence
has an entry in the ledger, too."""
ENDED_PER_PAGE = 6
"""Pending things that one transaction ends: a run before the gate takes up to eleven actions, and two for each of its limits."""
PAGE_ACTIONS = 45
"""Behind so many actions a page takes nothing further: a run with 16 limits takes up to 43, and with the answer's few they stay
below DynamoDB's 100."""
LISTED_MAX = 1_000
"""Things that a receipt lists by name: 40 KB of ids, well below an item's 400 KB. The ledger has them all."""
LISTED_BYTES_MAX = 100_000
"""Of the values by which evidence is listed: a data partition's name has up to 1 KB, and more as JSON."""


def end(unit: UnitOfWork, pending: Run | Job | Evidence, reason: str, now: int, detail: str = "") -> None:
    """Ends something that has not passed the gate."""
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
    """Ends a page of what is pending and adds it to the stored answer; the last page settles the answer.

    Attributes:
        receipt: The answer as it stands before this page.
        most: What it ends at most; None: as much as fits with what things weigh as a rule.
        keeps: What of an update's `on_update` says which jobs and runs stay.
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
        """Runs: the gate may have let one pass since it was read."""
        return run_keys_of(self.memory, self.about)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, self.request.namespace, self.request.name))
        assert state is not None
        runs = self._runs(unit, state)
        waiting = [run for run in runs if run.state in BEFORE_GATE]
        asked = [run for run in runs if self.cancels(run)]
        page = self.most or ENDED_PER_PAGE
        # One more than fits tells whether this page is the last: of evidence there may be thousands.
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
        # One that has reported its end is over, whoever is still to draw the conclusions: under a new generation no attempt follows.
        going_on = [run.id for run in runs if run.state not in BEFORE_GATE and run.ended_at is None]
        running = tuple(going_on)[:LISTED_MAX]
        told = grown(self.receipt, jobs, evidence, running, now)
        answer(unit, self.outcome, told, now, settled=done == len(pending))

    def cancels(self, run: Run) -> bool:
        """Whether the run goes on unless it is asked to end, and the request wants that."""
        wanted = isinstance(self.request, ScheduleDelete) and self.request.cancel_running
        return wanted and run.state not in BEFORE_GATE and run.ended_at is None and not run.cancel_requested

    def _stays(self, unit: UnitOfWork, state: ScheduleState, pending: Run | Job) -> bool:
        """Whether a job, or a run before the gate, goes on under the new generation.

        Nothing stays of a former life of the name, nor of what a wide suspend drops. A run that waits for its next try has run: it is no
        job any more.
        """
        if self.keeps not in KEEPS_DUE or pending.incarnation != state.incarnation:
            return False
        if unit.drops(pending.namespace, pending.satisfied_at):
            return False
        if isinstance(pending, Run) and pending.failure is not None:
            return False
        spec = spec_of(unit, state.namespace, state.name, state.version)
        if spec is None or spec.sends_messages:
            return False
        return pending.trigger == "time" or (isinstance(pending, Run) and self.keeps == "finish_admitted")

    def _bind(self, unit: UnitOfWork, state: ScheduleState, pending: Run | Job, now: int) -> None:
        """Has a job or a run go on under the new generation; a run as a job of the new version, unless it is to start as it was admitted."""
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
        # After a crash between two pages the new version may have runs already: they are none of this request's.
        return [run for run in runs if run.generation < oldest_kept_generation(state)]

    def _jobs(self, unit: UnitOfWork, state: ScheduleState) -> list[Job]:
        """Returns the first ones, enough to tell whether this page is the last: there may be thousands."""
        waiting = [job for job in self.memory.jobs_of(self.about) if job.state == "pending_constraint"]
        older = [keys.job(unit.shard, job.id) for job in waiting if job.generation < oldest_kept_generation(state)]
        jobs = [from_item(Job, item) for item in unit.items(older[: ENDED_PER_PAGE + 1]) if item is not None]
        return [job for job in jobs if job.state == "pending_constraint"]

    def _evidence(self, unit: UnitOfWork, state: ScheduleState) -> Iterator[Evidence]:
        """Evidence of jobs that ended on this page goes with them, so only what no job has yet is left here; and that of jobs
        that go on under another version, which absorb no more.
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
    """Returns the answer with what one more page has ended."""
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
