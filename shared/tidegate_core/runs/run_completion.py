"""How a run leaves the open runs: it ends, or it becomes a waiting job again.

Called by the decisions on runs, and by commands that suspend, update or delete a schedule. Each way is one transaction.
It returns the permits, and writes the ledger, the history and the outbox row of an end. It starts no further attempt;
`retries.py` does.

A run that has not passed the gate becomes a waiting job again when a suspend parks it, or when an update binds it to a
new version. Its item is deleted, so the gate refuses the attempt. The next attempt has a new number, which costs no
try.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidegate_core.engine.membership_lease import CLOCKS_APART_MS_MAX
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Cancel, Notice
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow, RunEnd
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.receipt import expiry
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.rows.store_operations import Value
from tidegate_core.runs.retries import STAYS, error_of, final_failure, retry
from tidegate_core.runs.run_events import outbox_row
from tidegate_core.shard.jobs import LEDGER_DAYS, clean_up_later, write_entry
from tidegate_core.shard.limits.limit_queue_entry import uncount_in_rate
from tidegate_core.shard.outages.outage_time import served_between
from tidegate_core.shard.run_history import never_started, note_end, reverse_admission
from tidegate_core.shard.shard_cache import PENDING_CONSTRAINT, ShardCache
from tidegate_core.writes.limit_permits import Permit, key_of
from tidegate_core.writes.unit_of_work import UnitOfWork

ENDED_RUN_DAYS = 30
HOST_SILENT = "its host does not answer"


def conclude(unit: UnitOfWork, run: Run, memory: ShardCache | None, now: int) -> None:
    """Ends a run whose end was observed, unless its schedule wants a further attempt."""
    run = as_dated_here(run, now)
    if run.reason == HOST_SILENT:
        run = replace(run, reason=None)  # The host has answered since.
    verdict = STAYS if memory is None else retry(unit, run, memory.retries, now)
    if not verdict.again:
        finish(unit, run, now, verdict.given_up)


def as_dated_here(run: Run, now: int) -> Run:
    """Returns a run whose start and end lie between its admission and now: programs report these times through an API
    whose clock is not checked.

    Constraints, triggers and the history count from these times. Differences within the tolerance of correct clocks
    stay.
    """

    def dated(at: int | None) -> int | None:
        if at is None or run.admitted_at - CLOCKS_APART_MS_MAX <= at <= now + CLOCKS_APART_MS_MAX:
            return at
        return min(max(at, run.admitted_at), now)

    return replace(run, started_at=dated(run.started_at), ended_at=dated(run.ended_at))


def close_run(unit: UnitOfWork, run: Run, disposition: str, reason: str, now: int) -> None:
    """Closes a run that has not passed the gate. The gate refuses it from now on, so its permits are free at once."""
    if run.failure is not None:
        closed = final_failure(run, reason)  # An earlier attempt has run, so the ledger entry reports that attempt.
    else:
        closed = replace(
            run, state="closed", ended_at=now, outcome="closed", reason=reason, disposition=f"{disposition}/{reason}"
        )
    finish(unit, closed, now)
    unit.after(Cancel(run.id, run.attempt))


def end_before_gate(
    unit: UnitOfWork,
    run: Run,
    outcome: str,
    reason: str,
    error_class: str | None,
    now: int,
    given_up: str | None = None,
) -> None:
    """Ends a run whose program never started, although it was submitted."""
    finish(unit, replace(run, ended_at=now, outcome=outcome, reason=reason, error_class=error_class), now, given_up)


def finish(unit: UnitOfWork, run: Run, now: int, given_up: str | None = None) -> None:
    """Finishes a run in one transaction: permits return, ledger, history and outbox rows are written, open rows are
    deleted.

    Args:
        unit: Unit of work of this transaction.
        run: The run as it ended.
        now: The present.
        given_up: Reason why no attempt or submission follows although one was wanted; it causes a dead letter.
    """
    assert run.ended_at is not None
    assert run.outcome is not None
    outcome, reason = run.outcome, run.reason
    if run.cancel_requested and outcome == "failed":
        # The wrapper may report the signal as a failure before the launcher sees the process end.
        outcome, reason = "killed", "cancelled"
    ended = replace(run, state=outcome, outcome=outcome, reason=reason, expires_at=expiry(now, ENDED_RUN_DAYS))
    for limit in run.limits:
        give_permit_back(unit, limit, ended, now)
    note_end(unit, ended)
    unit.delete(run.key(unit.shard))
    unit.delete(keys.job(unit.shard, run.id))
    if run.evidence_id is not None:
        clean_up_later(unit, run.evidence_id, run.chunks or 0, now)
    history = ended.ended_key(unit.shard)
    unit.put_new(ended, history)
    end = end_of(ended)
    unit.put_new(end, end.key(unit.shard))
    write_entry(unit, ledger_row(ended, now), history.sk)
    out = outbox_row(ended, given_up)
    unit.put_new(out, out.key(unit.shard))
    if given_up is not None:
        fields: dict[str, Value] = {"run_id": run.id, "schedule": run.ref, "attempt": run.attempt}
        unit.after(Notice("retries_exhausted", fields | {"error_class": error_of(run), "why": given_up}))


def give_permit_back(unit: UnitOfWork, limit: str, run: Run, now: int) -> None:
    """Returns one of the run's permits. A permit of a rate comes back by time, unless the run never started."""
    if keys.is_rate(key_of(limit)):
        if never_started(run):
            uncount_in_rate(unit, limit, now)
        return
    if limit.startswith(keys.SHARED_LIMIT):
        unit.give_back(Permit.named(limit, run.id))
        return
    key = key_of(limit)
    own = unit.record(OwnLimit, key)
    assert own is not None
    assert run.id in own.holders
    unit.put(replace(own, holders=tuple(holder for holder in own.holders if holder != run.id)), key)


def end_of(ended: Run) -> RunEnd:
    """Returns the row by which lists over all schedules find an ended run."""
    assert ended.ended_at is not None
    return RunEnd(
        id=ended.id,
        namespace=ended.namespace,
        name=ended.name,
        state=ended.state,
        ended_at=ended.ended_at,
        expires_at=ended.expires_at,
    )


def ledger_row(run: Run, now: int) -> LedgerRow:
    disposition, _, reason = (run.disposition or "launched/").partition("/")
    return LedgerRow(
        namespace=run.namespace,
        name=run.name,
        incarnation=run.incarnation,
        version=run.version,
        job_id=run.id,
        trigger=run.trigger,
        nominal=run.nominal,
        disposition=disposition,
        reason=reason,
        at=now,
        state=run.outcome,
        correlation=run.correlation,
        interval_start=run.interval_start,
        interval_end=run.interval_end,
        admitted_at=run.admitted_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        node=run.node,
        detail=run.reason,
        expires_at=expiry(now, LEDGER_DAYS),
        covered=run.covered,
        covered_from=run.covered_from,
        forced=run.forced,
    )


def park_run(unit: UnitOfWork, run: Run, now: int, outages: Sequence[Outage] = ()) -> None:
    """Turns a run that has not passed the gate into a waiting job, and returns its permits.

    Args:
        unit: Unit of work of this decision.
        run: The run as it is stored.
        now: The present.
        outages: Recorded outages of the shard. The pending time-out already excludes them (`pending_timeout.py`).
    """
    key = keys.job(unit.shard, run.id)
    job = unit.record(Job, key)
    assert job is not None
    for limit in run.limits:
        give_permit_back(unit, limit, run, now)
    reverse_admission(unit, run)
    unit.delete(run.key(unit.shard))
    parked = replace(
        job,
        state=PENDING_CONSTRAINT,
        attempt=run.attempt + 1,
        free_attempts=run.free_attempts + 1,
        # The time in which the run was open does not count as waiting.
        deadline=job.deadline + served_between(run.admitted_at, now, outages),
        unmet=None,
    )
    unit.put(parked, key)
    unit.after(Cancel(run.id, run.attempt))
