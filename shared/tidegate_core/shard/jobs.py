"""Creates jobs, ends them without a run, and writes ledger entries. All stages share it."""

from __future__ import annotations

from dataclasses import replace

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.derived_ids import manual_mark, nominal_mark, run_id
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.states import Disposition
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Notice
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerPlace, LedgerRow
from tidegate_core.rows.receipt import expiry
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Value
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.limits.limit_queue_entry import leave
from tidegate_core.shard.schedule_state import backlog_through, stopped
from tidegate_core.writes.unit_of_work import UnitOfWork

LEDGER_DAYS = 90
"""Days for which the ledger is kept."""
CHUNKS_KEPT_MS = 30 * 24 * 3_600_000
"""Time after the end of their evidence: as long as an ended run is kept. Open evidence may outlive any TTL."""


def waiting_job(state: ScheduleState, spec: ScheduleSpec, job_id: str, trigger: str, nominal: int, now: int) -> Job:
    """Returns the job of an occurrence whose trigger is satisfied now; its constraints are still to be checked.

    Args:
        state: State of the schedule.
        spec: Definition of the version in `state`.
        job_id: Id of the job and later of its run.
        trigger: Origin of the job: `time`, `events` or `manual`.
        nominal: Nominal time.
        now: Clock of the owner.
    """
    return Job(
        id=job_id,
        namespace=state.namespace,
        name=state.name,
        incarnation=state.incarnation,
        version=state.version,
        generation=state.generation,
        state="pending_constraint",
        trigger=trigger,
        nominal=nominal,
        # A job after a resume is not in its backlog, even when this clock is behind that of the node that wrote the
        # state.
        satisfied_at=now if _was_never_resumed(state) else max(now, backlog_through(state) + 1),
        deadline=now + spec.pending_timeout,
        stopped=stopped(state, now),
    )


def _was_never_resumed(state: ScheduleState) -> bool:
    return state.backlog_through is None and state.shedding is None


def time_job(
    shard: int, state: ScheduleState, spec: ScheduleSpec, nominal: int, now: int, since: int | None = None
) -> Job:
    """Returns the job of one instant of a time trigger; `since` as in `TimeTrigger.interval`."""
    trigger = spec.trigger
    assert isinstance(trigger, TimeTrigger)
    start, end = trigger.interval(nominal, keys.schedule_ref(state.namespace, state.name), since)
    job_id = run_id(shard, state.incarnation, trigger.type, nominal_mark(nominal))
    return replace(waiting_job(state, spec, job_id, "time", nominal, now), interval_start=start, interval_end=end)


def manual_job(shard: int, state: ScheduleState, spec: ScheduleSpec, position: Position, now: int) -> Job:
    """Returns the job of a `schedule.trigger` request; its nominal time is the request's append time."""
    job_id = run_id(shard, state.incarnation, "manual", manual_mark(position))
    return waiting_job(state, spec, job_id, "manual", position.append_time, now)


def end_job(unit: UnitOfWork, job: Job, disposition: str, reason: str, now: int, detail: str | None = None) -> None:
    """Ends a job without a run: writes its ledger entry and removes job, evidence and queue entries."""
    write_ledger(unit, job, disposition, reason, now, detail)
    leave(unit, job)
    unit.delete(job.key(unit.shard))
    if job.evidence_id is not None and job.chunks is not None:
        clean_up_later(unit, job.evidence_id, job.chunks, now)
    elif job.evidence_id is not None:
        evidence_key = keys.evidence(unit.shard, job.namespace, job.name, job.evidence_correlation)
        evidence = unit.record(Evidence, evidence_key)
        if evidence is not None and evidence.id == job.evidence_id:
            end_evidence(unit, evidence, now)


def end_evidence(unit: UnitOfWork, evidence: Evidence, now: int) -> None:
    """Removes evidence with its timer row."""
    unit.delete(evidence.key(unit.shard))
    if evidence.deadline is not None:
        ref = evidence_ref(evidence.namespace, evidence.name, evidence.correlation)
        unit.forget_row(keys.timer(unit.shard, evidence.deadline, keys.EVIDENCE_TIMER, ref))
    clean_up_later(unit, evidence.id, evidence.chunks, now)


def expire_evidence(
    unit: UnitOfWork,
    evidence: Evidence,
    detail: str,
    reason: str,
    now: int,
    unread: tuple[str, ...] = (),
    covered: tuple[int | None, int | None] = (None, None),
) -> None:
    """Records in the ledger that evidence did not become a job in time, and what was missing.

    Args:
        unit: Unit of work that takes the entry.
        evidence: Evidence that expires.
        detail: Missing parts, in words.
        reason: The `<reason>` in `expired/<reason>`.
        now: Time of the decision.
        unread: Topics that the decision did not wait for.
        covered: Number of pieces of evidence that the entry stands for, and the begin of the first.
    """
    if unread:
        detail += f"; did not wait for {', '.join(unread)}"
    note_evidence(unit, evidence, "expired", reason, now, detail, covered)


def note_evidence(
    unit: UnitOfWork,
    evidence: Evidence,
    disposition: str,
    reason: str,
    now: int,
    detail: str | None = None,
    covered: tuple[int | None, int | None] = (None, None),
) -> None:
    """Records in the ledger that evidence ended without becoming a job. Arguments as in `expire_evidence`."""
    job = Job(
        id=evidence.id,
        namespace=evidence.namespace,
        name=evidence.name,
        incarnation=evidence.incarnation,
        version=evidence.version,
        generation=0,
        state="pending_trigger",
        trigger="events",
        nominal=evidence.first_at,
        satisfied_at=now,
        deadline=now,
        correlation=evidence.value,
        covered=covered[0],
        covered_from=covered[1],
    )
    write_ledger(unit, job, disposition, reason, now, detail)


def clean_up_later(unit: UnitOfWork, evidence_id: str, chunks: int, now: int) -> None:
    """Schedules the removal of chunks, in the transaction that ends their evidence, so that none is left over."""
    if chunks:
        row = TimerRow(at=now + CHUNKS_KEPT_MS, kind=keys.CHUNKS_TIMER, ref=evidence_id, detail=str(chunks))
        unit.set_row(row, row.key(unit.shard))


def evidence_ref(namespace: str, name: str, correlation: str) -> str:
    return f"{keys.schedule_ref(namespace, name)}#{keys.text_hash(correlation)}"


def write_ledger(
    unit: UnitOfWork, job: Job, disposition: str, reason: str, now: int, detail: str | None = None
) -> None:
    """Records in the ledger the outcome of an occurrence that never started."""
    row = LedgerRow(
        namespace=job.namespace,
        name=job.name,
        incarnation=job.incarnation,
        version=job.version,
        job_id=job.id,
        trigger=job.trigger,
        nominal=job.nominal,
        disposition=disposition,
        reason=reason,
        at=now,
        correlation=job.correlation,
        interval_start=job.interval_start,
        interval_end=job.interval_end,
        detail=detail,
        expires_at=expiry(now, LEDGER_DAYS),
        covered=job.covered,
        covered_from=job.covered_from,
    )
    write_entry(unit, row)


def write_entry(unit: UnitOfWork, row: LedgerRow, run: str | None = None) -> None:
    """Writes a ledger entry and its place by job id: two actions. After the commit, log and metric report it.

    Args:
        unit: Unit of work of the transaction.
        row: Ledger entry.
        run: Sort key of the ended run, if the job became one.
    """
    key = row.key(unit.shard)
    unit.put_new(row, key)
    place = LedgerPlace(job_id=row.job_id, entry=key.sk, run=run, expires_at=row.expires_at)
    unit.set_row(place, place.key(unit.shard))
    fields: dict[str, Value] = {
        "schedule": keys.schedule_ref(row.namespace, row.name),
        "job": row.job_id,
        "trigger": row.trigger,
        "nominal": format_instant(row.nominal),
        "disposition": row.disposition,
        "reason": row.reason,
        "detail": row.detail,
    }
    did_not_run = row.disposition in (Disposition.SKIPPED, Disposition.EXPIRED)
    unit.after(Notice("occurrence_did_not_run", fields) if did_not_run else Notice("occurrence_ended", fields))


def seal(unit: UnitOfWork, evidence: Evidence) -> None:
    """Completes the job of the evidence with what it has; its group is free for the next job."""
    key = keys.job(unit.shard, evidence.id)
    job = unit.record(Job, key)
    assert job is not None
    unit.put(replace(job, chunks=evidence.chunks), key)
    unit.delete(evidence.key(unit.shard))
