"""Dry run of admission: the decision that admits a schedule's waiting jobs runs on a copy of the rows, and nothing is written.

So an explanation cannot contradict the decision. Only the node of the shard knows loads, because it samples them. For loads the stored verdict of
its last decision counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tidegate_core.admission.admit import AdmitNext
from tidegate_core.explain.why.reason import Reason
from tidegate_core.explain.why.schedule_snapshot import Facts
from tidegate_core.language.definitions.run_policies import Priority
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.states import Disposition, disposition_text
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.shard.job_order import by_class, queue_position
from tidegate_core.shard.schedule_state import parsed, stopped, version_of
from tidegate_core.shard.shard_cache import PENDING_CONSTRAINT, ShardCache
from tidegate_core.writes.read_cache import View
from tidegate_core.writes.unit_of_work import NotAtHand, UnitOfWork

Views: TypeAlias = Callable[[], View]
"""Returns a new view of all rows that were read. Each dry run needs one, because it leaves its writes in the view."""
LOAD_CODES = frozenset({"load_high", "load_unknown"})
DRY_RUN_JOBS_MAX = 1_000
"""Jobs that a dry run takes. The decision reaches a few of them and passes over catch-up jobs; a job rarely waits after a thousand of those."""
DECIDED_AGAIN_MAX = 100
"""Repeats of a dry run: the decision asks once for each limit that it reaches, and this is far more than its jobs have."""
ANY_NUMBER = 1 << 30
"""Bound of actions that is never reached: the owner reports in several transactions, and a dry run in a single one."""
_NO_EPOCH = 0
"""Epoch of a transaction that is never sent."""


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """Result of a dry run for one job.

    Attributes:
        holds: Blockers of the job.
        ends_as: `<disposition>/<reason>`, if the job would end.
        was_reached: Whether the decision reached the job. It does not if jobs before it fill the decision. It does not either if an earlier job
            would be admitted first, because the blockers of this job may be others then.
        goes: Whether the job would be admitted.
    """

    holds: tuple[Reason, ...] = ()
    ends_as: str | None = None
    was_reached: bool = True
    goes: bool = False


NOT_REACHED = DryRunResult(was_reached=False)


@dataclass(frozen=True, slots=True)
class Line:
    """Waiting jobs of a schedule.

    Attributes:
        jobs: Jobs in the order in which they are decided.
        results: Results of one dry run of all jobs, by job id, for the jobs that it took.
    """

    jobs: Sequence[Job]
    results: Mapping[str, DryRunResult]

    def result_of(self, job: Job) -> DryRunResult:
        return self.results.get(job.id, NOT_REACHED)


def line_of(views: Views, facts: Facts) -> Line:
    """Returns the waiting jobs with the results of a dry run, as the owner of the shard would decide.

    Raises:
        NotAtHand: A row is missing: read it, and call again.
    """
    waiting = in_line(facts)
    return Line(waiting, _dry_run(views, facts, waiting[:DRY_RUN_JOBS_MAX]))


def in_line(facts: Facts) -> list[Job]:
    """Returns the schedule's jobs that wait for their constraints, in the order in which they are decided.

    Args:
        facts: Facts of the schedule. If jobs of several versions wait, the definitions must be among them.
    """
    definitions = {each.version: each for each in facts.definitions}

    def priority_of(version: int) -> Priority:
        definition = definitions.get(version_of(facts.state, version))
        return "medium" if definition is None else parsed(definition.spec).priority

    placed = sorted((job for job in facts.jobs if job.state == PENDING_CONSTRAINT), key=queue_position)
    return by_class(placed, priority_of)


def dry_run(views: Views, facts: Facts, job: Job) -> DryRunResult:
    """Returns the result for one job as if no other job of its schedule waited. Raises NotAtHand when a row is missing."""
    return _dry_run(views, facts, [job])[job.id]


def _dry_run(views: Views, facts: Facts, jobs: Sequence[Job]) -> dict[str, DryRunResult]:
    # Without the stored verdicts: the decision would not write an equal verdict again, and its values may be old.
    fresh = [replace(job, unmet=None) for job in jobs]
    memory = _memory(facts, fresh)
    unit = _decided(views, facts, fresh, memory)
    unit.keep()
    ended = _ended(unit)
    before = {job.id: job for job in jobs}
    results: dict[str, DryRunResult] = {}
    one_goes = False
    for job in fresh:
        now = unit.record(Job, job.key(facts.shard))
        if now is None:
            results[job.id] = DryRunResult(ends_as=ended.get(job.id))
        elif now.state != PENDING_CONSTRAINT:
            results[job.id] = DryRunResult(goes=True)
            one_goes = True
        elif now.unmet is None or one_goes:
            # The run of the earlier job does not exist in fact, so a verdict that counts it would be wrong.
            results[job.id] = NOT_REACHED
        else:
            results[job.id] = DryRunResult(tuple(_with_loads(holds_of(now.unmet), before[job.id])))
    return results


def _decided(views: Views, facts: Facts, jobs: Sequence[Job], memory: ShardCache) -> UnitOfWork:
    """Returns the unit with the writes of the decision."""
    for _ in range(DECIDED_AGAIN_MAX):
        view = views()
        view.learn(*_rows(facts, jobs))
        unit = UnitOfWork(view, facts.shard, _NO_EPOCH, NO_SUSPENSIONS)
        try:
            AdmitNext(facts.ref, memory, _nobody, waiting_actions=ANY_NUMBER).decide(unit, facts.now)
        except NotAtHand as need:
            known = views()
            if need.ranges or need.elsewhere or not all(known.knows(key) for key in need.keys):
                raise
            # The decision wants a limit to be read for itself. All rows here were, and the cache remembers that now.
            continue
        return unit
    raise AssertionError("a dry run asks for a row that it has")


def _nobody(goes_on: bool) -> None:
    """Ignores the report that more jobs may be admitted."""


def _memory(facts: Facts, jobs: Iterable[Job]) -> ShardCache:
    memory = ShardCache(facts.shard, facts.shards)
    memory.outages_are(facts.outages)
    records: list[Job | Run] = [*jobs, *facts.runs]
    for record in records:
        key = record.key(facts.shard)
        memory.apply_row(key, to_item(record, key))
    return memory


def _rows(facts: Facts, jobs: Iterable[Job]) -> tuple[list[Key], dict[Key, Item]]:
    """Returns the rows that replace stored ones in the view: the jobs, the runs, and the schedule as active."""
    state = facts.state
    moving = replace(
        state,
        status="active",
        shedding=None,
        # The clocks are stopped during a suspension, so no time-out may pass in the dry run.
        stopped_ms=stopped(state, facts.now),
    )
    records: list[Job | Run | ScheduleState] = [*jobs, *facts.runs, moving]
    found = {each.key(facts.shard): {**to_item(each, each.key(facts.shard)), "rev": 1} for each in records}
    return list(found), found


def _ended(unit: UnitOfWork) -> dict[str, str]:
    rows = [
        from_item(LedgerRow, item)
        for key, item in unit.writes.items()
        if item and key.sk.startswith(keys.LEDGER_PREFIX)
    ]
    return {row.job_id: disposition_text(Disposition(row.disposition), row.reason) for row in rows}


def holds_of(unmet: str) -> list[Reason]:
    """Returns the verdicts that the last decision stored with a job."""
    told = json.loads(unmet)
    return [
        # An older version wrote one text for all verdicts.
        Reason(each["code"], each.get("reason", told["reason"]), each["until"], each["values"])
        for each in told.get("verdicts", ())
    ]


def _with_loads(holds: list[Reason], job: Job) -> list[Reason]:
    """Returns the verdicts, with those about loads replaced by the stored ones of the node."""
    if job.unmet is None or not any(each.code in LOAD_CODES for each in holds):
        return holds
    seen = [each for each in holds_of(job.unmet) if each.code in LOAD_CODES]
    at = json.loads(job.unmet).get("at")
    if at is not None:
        decided = f"as its node decided at {format_instant(at)}"
        seen = [
            replace(each, text=f"{each.text} ({decided})", values={**each.values, "decided_at": format_instant(at)})
            for each in seen
        ]
    return [*(each for each in holds if each.code not in LOAD_CODES), *seen]
