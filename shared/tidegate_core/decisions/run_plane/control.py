"""Requests: what a user asks of a schedule, a job or a run, applied by the shard's owner and acknowledged by a receipt (DESIGN 7).

A request is an inbox row until its receipt is on `tidegate.receipts`; a crash anywhere in between replays it, and every step
finds out what is done already: by the stored receipt, or by the position that the schedule's state carries.

Order within a request that ends what is pending: first the state moves (nothing new is admitted from then on), then
pending jobs, evidence and runs before the gate end page by page, then the receipt is written. I7 rests on that order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tidegate_core.decisions.run_plane.definitions import parsed
from tidegate_core.decisions.run_plane.jobs import end_evidence, end_job, expiry, manual_job
from tidegate_core.decisions.run_plane.memory import Memory
from tidegate_core.decisions.run_plane.runs import BEFORE_GATE, close_run
from tidegate_core.model.identity import incarnation_of
from tidegate_core.model.position import Position
from tidegate_core.model.problems import Problem
from tidegate_core.model.receipts import Discarded, Receipt, ReceiptStatus
from tidegate_core.model.requests import ScheduleRequest
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.records.codec import from_item
from tidegate_core.records.run_plane import Definition, Evidence, Job, Run, ScheduleState, StoredReceipt, TimerRow
from tidegate_core.store import keys
from tidegate_core.store.values import Key
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.triggers.base import TimeTrigger

ENDED_PER_PAGE = 6
"""Pending things that one transaction ends: a run before the gate takes up to eight actions."""
RECEIPT_DAYS = 7
TOMBSTONE_DAYS = 30
"""Longer than the requests topic's retention (7 d), so that a replayed older request still finds it."""
NEXT_SHOWN = 3
LISTED_MAX = 1_000
"""Things that a receipt lists by name: 40 KB of ids, well below an item's 400 KB. The ledger has them all."""


@dataclass(slots=True)
class Outcome:
    """What applying a request has come to; filled by the decisions, read by the procedure."""

    receipt: Receipt | None = None
    more: bool = False
    discarded_jobs: list[str] = field(default_factory=list)
    discarded_evidence: dict[str, int] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Applied:
    """What a request would make of the state: the next state, and what to tell.

    Attributes:
        state: None when nothing changes.
        definition: The version's spec, for `schedule.apply`.
        reason: Why pending things end (`superseded`, `suspended`, `schedule_deleted`), None when they stay.
    """

    status: ReceiptStatus
    state: ScheduleState | None = None
    definition: Definition | None = None
    reason: str | None = None
    errors: tuple[Problem, ...] = ()
    next: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MoveState:
    """First step of a request on a schedule: the state moves, or the receipt says why it does not."""

    request: ScheduleRequest
    request_id: str
    position: Position
    applied: Applied
    before: ScheduleState | None
    outcome: Outcome
    stale: tuple[Key, ...] = ()
    name: str = "control"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        applied, before = self.applied, self.before
        state = applied.state
        if state is None:
            self._answer(unit, now)
            return
        key = state.key(unit.shard)
        unit.item(key)
        if applied.definition is not None:
            unit.put_new(applied.definition, applied.definition.key(unit.shard))
        ref = keys.schedule_ref(state.namespace, state.name)
        if before is not None and before.next_nominal is not None and before.next_nominal != state.next_nominal:
            unit.forget_row(keys.timer(unit.shard, before.next_nominal, "S", ref))
        if state.next_nominal is not None:
            row = TimerRow(at=state.next_nominal, kind="S", ref=ref)
            unit.set_row(row, row.key(unit.shard))
        unit.put(replace(state, settled=applied.reason is None), key)
        if applied.reason is None:
            self._answer(unit, now)

    def _answer(self, unit: UnitOfWork, now: int) -> None:
        state = self.applied.state or self.before
        self.outcome.receipt = receipt_for(self, state, now)
        store_receipt(unit, self.request_id, self.outcome.receipt, now)


def receipt_for(step: MoveState, state: ScheduleState | None, now: int) -> Receipt:
    return Receipt.model_construct(
        request_id=step.request_id,
        status=step.applied.status,
        namespace=step.request.namespace,
        name=step.request.name,
        version=None if state is None else state.version,
        next=step.applied.next,
        errors=step.applied.errors,
        at=now,
    )


@dataclass(frozen=True, slots=True)
class EndPending:
    """Next step: ends a page of what is pending under an older generation; with the last page the receipt is written."""

    request: ScheduleRequest
    request_id: str
    status: ReceiptStatus
    reason: str
    next: tuple[int, ...]
    memory: Memory
    outcome: Outcome
    stale: tuple[Key, ...] = ()
    name: str = "end_pending"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        outcome = self.outcome
        outcome.receipt, outcome.more = None, False
        ref = keys.schedule_ref(self.request.namespace, self.request.name)
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, self.request.namespace, self.request.name))
        assert state is not None
        left = ENDED_PER_PAGE
        jobs, evidence, running = [], {}, []
        for run in self._runs(unit, ref, state):
            if run.state not in BEFORE_GATE:
                running.append(run.id)
            elif left:
                close_run(unit, run, "cancelled", self.reason, now)
                jobs.append(run.id)
                left -= 1
            else:
                outcome.more = True
        for job in self._jobs(unit, ref, state):
            if left:
                end_job(unit, job, "cancelled", self.reason, now)
                jobs.append(job.id)
                left -= 1
            else:
                outcome.more = True
        for each in self._evidence(unit, ref, state):
            if left:
                evidence[each.correlation] = sum(each.counts)
                end_evidence(unit, each)
                left -= 1
            else:
                outcome.more = True
        unit.after(lambda: self._remember(jobs, evidence, running))
        if not outcome.more:
            self._settle(
                unit, state, [*outcome.discarded_jobs, *jobs], {**outcome.discarded_evidence, **evidence}, running, now
            )

    def _runs(self, unit: UnitOfWork, ref: str, state: ScheduleState) -> list[Run]:
        wanted = [keys.run(unit.shard, run.id) for run in self.memory.runs_of(ref)]
        runs = [from_item(Run, item) for item in unit.items(wanted) if item is not None]
        # After a crash between two pages the new version may have runs already: they are none of this request's.
        return [run for run in runs if run.generation < state.generation]

    def _jobs(self, unit: UnitOfWork, ref: str, state: ScheduleState) -> list[Job]:
        wanted = [keys.job(unit.shard, job.id) for job in self.memory.jobs_of(ref) if job.state == "pending_constraint"]
        jobs = [from_item(Job, item) for item in unit.items(wanted) if item is not None]
        return [job for job in jobs if job.generation < state.generation and job.state == "pending_constraint"]

    def _evidence(self, unit: UnitOfWork, ref: str, state: ScheduleState) -> list[Evidence]:
        items = unit.range(f"E#{ref}#", f"E#{ref}#{keys.LAST}")
        found = [from_item(Evidence, item) for item in items]
        return [each for each in found if each.version < state.version or state.status != "active"]

    def _remember(self, jobs: list[str], evidence: dict[str, int], running: list[str]) -> None:
        self.outcome.discarded_jobs.extend(jobs)
        self.outcome.discarded_evidence.update(evidence)
        self.outcome.running[:] = running

    def _settle(
        self,
        unit: UnitOfWork,
        state: ScheduleState,
        jobs: list[str],
        evidence: dict[str, int],
        running: list[str],
        now: int,
    ) -> None:
        unit.put(replace(state, settled=True), state.key(unit.shard))
        receipt = Receipt.model_construct(
            request_id=self.request_id,
            status=self.status,
            namespace=self.request.namespace,
            name=self.request.name,
            version=state.version,
            next=self.next,
            discarded=Discarded.model_construct(
                jobs=tuple(jobs[:LISTED_MAX]), evidence=dict(list(evidence.items())[:LISTED_MAX])
            ),
            running=tuple(running[:LISTED_MAX]),
            at=now,
        )
        self.outcome.receipt = receipt
        store_receipt(unit, self.request_id, receipt, now)


def store_receipt(unit: UnitOfWork, request_id: str, receipt: Receipt, now: int) -> None:
    """The answer is stored with what it answers; a repeat of the request gets it again (7 days)."""
    stored = StoredReceipt(request_id=request_id, body=receipt.to_json().decode(), expires_at=expiry(now, RECEIPT_DAYS))
    unit.put(stored, stored.key(unit.shard))


# -- what each request makes of a state ----------------------------------------------------------------------------------


def next_state(
    before: ScheduleState | None, position: Position, namespace: str, name: str, now: int, **changes: object
) -> ScheduleState:
    """Returns the state after a request; a name that is new or was deleted begins a new incarnation."""
    base = before
    if base is None or base.status == "deleted":
        base = ScheduleState(
            namespace=namespace,
            name=name,
            status="active",
            incarnation=incarnation_of(position),
            version=0 if before is None else before.version,
            generation=0 if before is None else before.generation,
            position=position.text(),
        )
    return replace(base, position=position.text(), changed_at=now, **changes)  # type: ignore[arg-type]  # fields by name


def applied_spec(
    before: ScheduleState | None,
    spec: ScheduleSpec,
    position: Position,
    actor: str | None,
    reason: str | None,
    now: int,
) -> Applied:
    """`schedule.apply`: every change restarts (SEMANTICS 12.2); an identical spec changes nothing (12.1)."""
    spec_hash = spec.spec_hash()
    if before is not None and before.status != "deleted" and before.spec_hash == spec_hash:
        return _untouched(ReceiptStatus.UNCHANGED, before, position)
    fresh = before is None or before.status == "deleted"
    kept_status = "active" if before is None or fresh else before.status
    status = "suspended" if fresh and spec.suspended else kept_status
    state = next_state(before, position, spec.namespace, spec.name, now)
    ref = keys.schedule_ref(spec.namespace, spec.name)
    state = replace(
        state,
        status=status,
        version=state.version + 1,
        generation=state.generation + 1,
        activated_at=now,
        next_nominal=_first_nominal(spec, ref, now) if status == "active" else None,
        spec_hash=spec_hash,
        actor=actor,
        reason=reason,
        expires_at=None,
    )
    definition = Definition(
        namespace=spec.namespace, name=spec.name, version=state.version, spec=spec.canonical_json(), created_at=now
    )
    return Applied(
        ReceiptStatus.ACCEPTED,
        state,
        definition,
        None if before is None else "superseded",
        next=next_instants(spec, state),
    )


def deleted(before: ScheduleState | None, request: ScheduleRequest, position: Position, now: int) -> Applied:
    """`schedule.delete`: a versioned tombstone, also for a name that was never seen (an older create may still come)."""
    if before is not None and before.status == "deleted":
        return _untouched(ReceiptStatus.NOT_FOUND, before, position)
    state = next_state(before, position, request.namespace, request.name, now)
    state = replace(
        state,
        status="deleted",
        version=state.version + 1,
        generation=state.generation + 1,
        next_nominal=None,
        spec_hash="",
        actor=request.actor,
        reason=request.reason,
        expires_at=expiry(now, TOMBSTONE_DAYS),
    )
    return Applied(
        ReceiptStatus.NOT_FOUND if before is None else ReceiptStatus.ACCEPTED, state, None, "schedule_deleted"
    )


def suspended(before: ScheduleState | None, request: ScheduleRequest, position: Position, now: int) -> Applied:
    """`schedule.suspend`, mode `drop`: what is pending is cancelled, events meanwhile are ignored (SEMANTICS 10)."""
    if before is None or before.status == "deleted":
        return Applied(ReceiptStatus.NOT_FOUND)
    if before.status == "suspended":
        return _untouched(ReceiptStatus.UNCHANGED, before, position)
    state = next_state(
        before,
        position,
        request.namespace,
        request.name,
        now,
        status="suspended",
        generation=before.generation + 1,
        next_nominal=None,
        actor=request.actor,
        reason=request.reason,
    )
    return Applied(ReceiptStatus.ACCEPTED, state, None, "suspended")


def resumed(
    before: ScheduleState | None, definition: Definition | None, request: ScheduleRequest, position: Position, now: int
) -> Applied:
    """`schedule.resume`: a suspended span is never a miss, time triggers go on from now (backlog `none`)."""
    if before is None or before.status == "deleted" or definition is None:
        return Applied(ReceiptStatus.NOT_FOUND)
    if before.status == "active":
        return _untouched(ReceiptStatus.UNCHANGED, before, position)
    ref = keys.schedule_ref(request.namespace, request.name)
    state = next_state(
        before,
        position,
        request.namespace,
        request.name,
        now,
        status="active",
        generation=before.generation + 1,
        activated_at=now,
        next_nominal=_first_nominal(parsed(definition.spec), ref, now),
        actor=request.actor,
        reason=request.reason,
    )
    return Applied(ReceiptStatus.ACCEPTED, state, next=next_instants(parsed(definition.spec), state))


def _untouched(status: ReceiptStatus, before: ScheduleState, position: Position) -> Applied:
    """Nothing changes but the position: an older request that arrives later is superseded all the same."""
    return Applied(status, replace(before, position=position.text()))


def _first_nominal(spec: ScheduleSpec, ref: str, now: int) -> int | None:
    if not isinstance(spec.trigger, TimeTrigger):
        return None
    return spec.trigger.first_after_activation(now, ref)


def next_instants(spec: ScheduleSpec, state: ScheduleState) -> tuple[int, ...]:
    """Returns up to three coming instants, as the receipt shows them."""
    instants: list[int] = []
    nominal = state.next_nominal
    ref = keys.schedule_ref(state.namespace, state.name)
    while nominal is not None and len(instants) < NEXT_SHOWN and isinstance(spec.trigger, TimeTrigger):
        instants.append(nominal)
        nominal = spec.trigger.next_after(nominal, ref)
    return tuple(instants)


@dataclass(frozen=True, slots=True)
class TriggerNow:
    """`schedule.trigger`: skips the trigger only; constraints, limits, overlap and suspend hold (SEMANTICS 4)."""

    request: ScheduleRequest
    request_id: str
    position: Position
    outcome: Outcome
    stale: tuple[Key, ...] = ()
    name: str = "trigger"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, self.request.namespace, self.request.name))
        status, job = ReceiptStatus.ACCEPTED, None
        errors: tuple[Problem, ...] = ()
        if state is None or state.status == "deleted":
            status = ReceiptStatus.NOT_FOUND
        elif state.status == "suspended":
            status = ReceiptStatus.REJECTED
            problem = "the schedule is suspended"
            errors = (
                Problem(field="name", problem=problem, hint="resume it first: suspend holds for manual runs too"),
            )
        else:
            definition = unit.record(
                Definition, keys.definition(unit.shard, state.namespace, state.name, state.version)
            )
            assert definition is not None
            job = manual_job(unit.shard, state, parsed(definition.spec), self.position, now)
            unit.put_new(job, job.key(unit.shard))
        self.outcome.receipt = Receipt.model_construct(
            request_id=self.request_id,
            status=status,
            namespace=self.request.namespace,
            name=self.request.name,
            version=None if state is None else state.version,
            id=None if job is None else job.id,
            errors=errors,
            at=now,
        )
        store_receipt(unit, self.request_id, self.outcome.receipt, now)


@dataclass(frozen=True, slots=True)
class CancelJob:
    """`job.cancel`: a job that waits is cancelled; one that became a run is answered as `too_late`."""

    job_id: str
    request_id: str
    namespace: str | None
    outcome: Outcome
    stale: tuple[Key, ...] = ()
    name: str = "cancel_job"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        job = unit.record(Job, keys.job(unit.shard, self.job_id))
        if job is None or self.namespace not in (None, job.namespace):
            status = ReceiptStatus.NOT_FOUND
        elif job.state != "pending_constraint":
            status = ReceiptStatus.TOO_LATE
        else:
            end_job(unit, job, "cancelled", "by_request", now)
            status = ReceiptStatus.CANCELLED
        name = None if job is None else job.name
        self.outcome.receipt = Receipt.model_construct(
            request_id=self.request_id, status=status, namespace=self.namespace, name=name, id=self.job_id, at=now
        )
        store_receipt(unit, self.request_id, self.outcome.receipt, now)


@dataclass(frozen=True, slots=True)
class CancelRun:
    """`run.cancel`: the run is closed before the gate, or ended by its launcher after it."""

    shard: int
    run_id: str
    request_id: str
    namespace: str | None
    outcome: Outcome
    name: str = "cancel_run"

    @property
    def stale(self) -> tuple[Key, ...]:
        return (keys.run(self.shard, self.run_id),)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        from tidegate_core.decisions.run_plane.runs import RequestCancel

        run = unit.record(Run, keys.run(unit.shard, self.run_id))
        running: tuple[str, ...] = ()
        if run is None or self.namespace not in (None, run.namespace):
            status = ReceiptStatus.NOT_FOUND
        elif run.ended_at is not None:
            status = ReceiptStatus.TOO_LATE
        else:
            if run.state not in BEFORE_GATE:
                running = (run.id,)
            RequestCancel(unit.shard, self.run_id).decide(unit, now)
            status = ReceiptStatus.CANCELLED
        self.outcome.receipt = Receipt.model_construct(
            request_id=self.request_id,
            status=status,
            namespace=self.namespace,
            name=None if run is None else run.name,
            id=self.run_id,
            running=running,
            at=now,
        )
        store_receipt(unit, self.request_id, self.outcome.receipt, now)
