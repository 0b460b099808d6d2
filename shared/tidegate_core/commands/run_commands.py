"""Requests about one occurrence: fire now, cancel a job, cancel a run, release a lost run.

`apply_request.py` runs each as one transaction, which writes the job or the run together with the stored receipt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.commands.schedule_commands import version_conflict
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import RunRelease, ScheduleTrigger
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import Problem
from tidegate_core.rows import keys
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerPlace, LedgerRow
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.runs.run_completion import conclude
from tidegate_core.runs.run_lifecycle import BEFORE_GATE, RequestCancel, release_lost
from tidegate_core.shard.jobs import end_job, manual_job
from tidegate_core.shard.schedule_state import is_cut, oldest_kept_generation, parsed
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.shard.timer_rows import remind_anew
from tidegate_core.writes.unit_of_work import UnitOfWork

NO_WAITING_JOB = Problem(
    field="job_id",
    problem="is the id of no job that has come about",
    hint="one that gathers evidence still (pending_trigger) ends with an update, a suspend or a delete of its schedule",
)
NO_RUN = Problem(
    field="run_id",
    problem="is the id of no run",
    hint="a job that waits to become one is ended with job.cancel (tidegate job cancel)",
)


def _queue_is_full(max_pending: int) -> Problem:
    problem = f"{max_pending} jobs of the schedule wait already, as many as its max_pending"
    return Problem(
        field="name", problem=problem, hint="ask again when some have run, or raise max_pending (overlap: queue)"
    )


@dataclass(frozen=True, slots=True)
class TriggerNow:
    """Fires a schedule by hand (`schedule.trigger`). It skips only the trigger: constraints, limits, overlap policy and suspensions apply."""

    request: ScheduleTrigger
    request_id: str
    position: Position
    outcome: Outcome
    memory: ShardCache
    stale: tuple[Key, ...] = ()
    name: str = "trigger"

    @property
    def about(self) -> str:
        return keys.schedule_ref(self.request.namespace, self.request.name)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, self.request.namespace, self.request.name))
        status, job = ReceiptStatus.ACCEPTED, None
        errors: tuple[Problem, ...] = ()
        if state is not None and state.position > self.position.text():
            status = ReceiptStatus.SUPERSEDED
        elif state is None or state.status == "deleted":
            status = ReceiptStatus.NOT_FOUND
        elif conflict := version_conflict(self.request, state):
            status, errors = ReceiptStatus.CONFLICT, (conflict,)
        elif state.status == "suspended" or unit.controls.covers(state.namespace):
            status = ReceiptStatus.REJECTED
            wide = "" if state.status == "suspended" else "'s namespace, or the whole system,"
            problem = f"the schedule{wide} is suspended"
            errors = (
                Problem(field="name", problem=problem, hint="resume it first: suspend holds for manual runs too"),
            )
        else:
            definition = unit.record(
                Definition, keys.definition(unit.shard, state.namespace, state.name, state.version)
            )
            assert definition is not None
            spec = parsed(definition.spec)
            of_target = spec.target_rules.trigger_problem()
            if of_target is not None:
                status, errors = ReceiptStatus.REJECTED, (of_target,)
            elif self._waiting(state, spec) >= spec.max_pending:
                status, errors = ReceiptStatus.REJECTED, (_queue_is_full(spec.max_pending),)
            else:
                job = manual_job(unit.shard, state, spec, self.position, now)
                job = replace(job, force_overlap=self.request.force_overlap or None)
                unit.put_new(job, job.key(unit.shard))
                if isinstance(spec.trigger, EventTrigger):
                    remind_anew(unit, state, spec.trigger, now)
        receipt = Receipt.model_construct(
            request_id=self.request_id,
            status=status,
            namespace=self.request.namespace,
            name=self.request.name,
            version=None if state is None else state.version or None,
            id=None if job is None else job.id,
            errors=errors,
            at=now,
        )
        answer(unit, self.outcome, receipt, now)

    def _waiting(self, state: ScheduleState, spec: ScheduleSpec) -> int:
        """Returns how many jobs are ahead of a new manual job.

        Manual jobs are never merged, so only this number bounds them. Catch-up jobs come after a manual job, and do not count. Jobs that a
        request has ended do not count either, even if their ledger entry is still to be written. With `force_overlap`, or an overlap policy
        other than `queue`, only manual jobs count.
        """
        known = [self.memory.jobs[job_id] for job_id in self.memory.waiting(self.about)]
        on_time = [job for job in known if not job.catch_up]
        jobs = [job for job in on_time if job.generation >= oldest_kept_generation(state) and not is_cut(state, job)]
        if spec.overlap == "queue" and not self.request.force_overlap:
            return len(jobs)
        return sum(job.trigger == "manual" for job in jobs)


@dataclass(frozen=True, slots=True)
class CancelJob:
    """Cancels a waiting job (`job.cancel`). The answer is `too_late` for a job that became a run or has ended."""

    job_id: str
    request_id: str
    namespace: str | None
    outcome: Outcome
    stale: tuple[Key, ...] = ()
    name: str = "cancel_job"

    @property
    def about(self) -> str:
        return self.job_id

    def decide(self, unit: UnitOfWork, now: int) -> None:
        job = unit.record(Job, keys.job(unit.shard, self.job_id))
        ended = None if job is not None else _ended(unit, self.job_id) or _closed(unit, self.job_id)
        found = job or ended
        if found is not None and self.namespace not in (None, found.namespace):
            found = None  # It belongs to another namespace, which the answer must not reveal.
        if found is None:
            status = ReceiptStatus.NOT_FOUND
        elif job is None or job.state != "pending_constraint":
            status = ReceiptStatus.TOO_LATE
        else:
            end_job(unit, job, "cancelled", "by_request", now)
            status = ReceiptStatus.CANCELLED
        receipt = Receipt.model_construct(
            request_id=self.request_id,
            status=status,
            namespace=self.namespace or (None if found is None else found.namespace),
            name=None if found is None else found.name,
            id=self.job_id,
            errors=() if found is not None else (NO_WAITING_JOB,),
            at=now,
        )
        answer(unit, self.outcome, receipt, now, under=self.namespace)


@dataclass(frozen=True, slots=True)
class CancelRun:
    """Cancels a run (`run.cancel`): before the start gate it is closed, after the gate its launcher ends it.

    If the program has reported its end, the run is completed first. Then the request cancels the next attempt. The answer is `too_late` only if
    no attempt follows (I7).
    """

    shard: int
    run_id: str
    request_id: str
    namespace: str | None
    outcome: Outcome
    memory: ShardCache
    name: str = "cancel_run"

    @property
    def about(self) -> str:
        return self.run_id

    @property
    def stale(self) -> tuple[Key, ...]:
        return (keys.run(self.shard, self.run_id),)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        run = _concluded(unit, self.run_id, self.namespace, self.memory, now)
        running: tuple[str, ...] = ()
        if run is None:
            status = ReceiptStatus.NOT_FOUND
        elif run.ended_at is not None:
            status = ReceiptStatus.TOO_LATE
        else:
            if run.state not in BEFORE_GATE:
                running = (run.id,)
            RequestCancel(unit.shard, self.run_id).decide(unit, now)
            status = ReceiptStatus.CANCELLED
        receipt = Receipt.model_construct(
            request_id=self.request_id,
            status=status,
            namespace=self.namespace or (None if run is None else run.namespace),
            name=None if run is None else run.name,
            id=self.run_id,
            running=running,
            errors=() if run is not None else (NO_RUN,),
            at=now,
        )
        answer(unit, self.outcome, receipt, now, under=self.namespace)


@dataclass(frozen=True, slots=True)
class ReleaseRun:
    """Releases a lost run (`run.release`): the run ends, its permits are returned, and the schedule's retry policy decides about a retry.

    No other open run is released: a second copy would run next to a program that runs or may still start. If the program has reported its end,
    the run is completed first, as for a cancel.
    """

    shard: int
    request: RunRelease
    request_id: str
    outcome: Outcome
    memory: ShardCache
    name: str = "release_run"

    @property
    def about(self) -> str:
        return self.request.run_id

    @property
    def stale(self) -> tuple[Key, ...]:
        return (keys.run(self.shard, self.request.run_id),)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        run = _concluded(unit, self.request.run_id, self.request.namespace, self.memory, now)
        errors: tuple[Problem, ...] = ()
        if run is None:
            status = ReceiptStatus.NOT_FOUND
        elif run.ended_at is not None:
            status = ReceiptStatus.TOO_LATE
        elif run.state != "lost":
            status, errors = ReceiptStatus.REJECTED, (_not_lost(run),)
        else:
            release_lost(unit, run, self.request.actor, self.request.reason, self.memory, now)
            status = ReceiptStatus.ACCEPTED
        receipt = Receipt.model_construct(
            request_id=self.request_id,
            status=status,
            namespace=self.request.namespace or (None if run is None else run.namespace),
            name=None if run is None else run.name,
            id=self.request.run_id,
            errors=errors,
            at=now,
        )
        answer(unit, self.outcome, receipt, now, under=self.request.namespace)


def _not_lost(run: Run) -> Problem:
    hint = "only a run that is lost is released; end this one with run.cancel (tidegate run cancel)"
    return Problem(field="run_id", problem=f"the run is {run.state}", hint=hint)


def _concluded(unit: UnitOfWork, run_id: str, namespace: str | None, memory: ShardCache, now: int) -> Run | None:
    """Returns an open or ended run, after it is completed if it has reported its end; None: the namespace has no such run."""
    run = unit.record(Run, keys.run(unit.shard, run_id))
    found = run or _ended(unit, run_id)
    if found is None or namespace not in (None, found.namespace):
        return None  # A run of another namespace must not be revealed.
    if run is not None and run.ended_at is not None:
        conclude(unit, run, memory, now)
        return unit.record(Run, run.key(unit.shard)) or run
    return found


def _closed(unit: UnitOfWork, job_id: str) -> LedgerRow | None:
    """Returns the ledger entry of a job that ended and never became a run."""
    found = unit.record(LedgerPlace, keys.ledger_place(unit.shard, job_id))
    return None if found is None else unit.record(LedgerRow, found.entry_key(unit.shard))


def _ended(unit: UnitOfWork, run_id: str) -> Run | None:
    """Returns an ended run from the history."""
    place = unit.record(LedgerPlace, keys.ledger_place(unit.shard, run_id))
    key = None if place is None else place.run_key(unit.shard)
    return None if key is None else unit.record(Run, key)
