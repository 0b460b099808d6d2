"""Admission: a job whose constraints hold becomes a run, with all its permits, in one transaction (I4, I7).

Check and act are the same write: what this decision read is what the transaction's conditions demand.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from tidegate_core.constraints.base import Hold, LimitRef
from tidegate_core.decisions.run_plane.definitions import spec_of
from tidegate_core.decisions.run_plane.jobs import end_job
from tidegate_core.decisions.run_plane.launching import resolve_order
from tidegate_core.decisions.run_plane.memory import Memory
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.model.templates import Unresolved
from tidegate_core.records.run_plane import Evidence, Job, OwnLimit, Run, ScheduleState
from tidegate_core.store import keys
from tidegate_core.store.values import Key
from tidegate_core.transactions import conditions
from tidegate_core.transactions.unit_of_work import UnitOfWork, take_permit

SHARED_LIMIT_RETRY_MS = 1_000
"""A job that waits for a program's limit looks again within this time (no order between shards yet)."""
START_WITHIN_MS = 15 * 60_000
"""SEMANTICS 13: from submission to the gate."""
NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class AdmitNext:
    """Decides on the first waiting job of a schedule; first come, first served (overlap `queue` and `allow`)."""

    ref: str
    memory: Memory
    name: str = "admit"

    @property
    def stale(self) -> tuple[Key, ...]:
        """Limits that other shards' owners write too."""
        return self.memory.shared_limits(self.ref)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, schedule = self.ref.split("/", 1)
        state_key = keys.schedule_state(unit.shard, namespace, schedule)
        state = unit.record(ScheduleState, state_key)
        job = self._first(unit)
        if job is None or state is None:
            return
        if state.status != "active" or job.generation != state.generation:
            return  # The request that ended it is ending its jobs, page by page.
        spec = spec_of(unit, namespace, schedule, job.version)
        assert spec is not None
        hold, limit = self._held(unit, spec, job, now)
        if job.deadline <= now:
            end_job(unit, job, "expired", "constraint_timeout", now, _unmet_text(hold))
        elif hold is None:
            self._admit(unit, state_key, state, spec, job, now)
        elif _aborts(spec, hold):
            end_job(unit, job, "skipped", hold.reason_code, now, hold.reason)
        else:
            self._wait(unit, job, hold, limit)

    def _first(self, unit: UnitOfWork) -> Job | None:
        """Returns the first job that still waits, this transaction's own admissions taken into account."""
        for job_id in self.memory.waiting(self.ref):
            job = unit.record(Job, keys.job(unit.shard, job_id))
            if job is not None and job.state == "pending_constraint":
                return job
        return None

    # -- constraints --------------------------------------------------------------------------------------------------

    def _held(self, unit: UnitOfWork, spec: ScheduleSpec, job: Job, now: int) -> tuple[Hold | None, str | None]:
        """Returns the first thing that stands in the way, and the limit's key if it is one; one instant for all of them."""
        for constraint in spec.constraints:
            verdict = constraint.check(now)
            if isinstance(verdict, Hold):
                return verdict, None
        wanted = [(limit, limit_key(unit.shard, limit)) for limit in limits_of(spec)]
        shared = tuple(key for limit, key in wanted if limit.scope == "program")
        if shared != self.memory.shared_limits(self.ref):
            self.memory.remember_shared_limits(self.ref, shared)
        for limit, key in wanted:
            holders = _holders(unit, key, limit)
            if job.id not in holders and len(holders) >= limit.max:
                hold = Hold(
                    until=None if limit.scope == "schedule" else now + SHARED_LIMIT_RETRY_MS,
                    reason_code="concurrency",
                    reason=f"{len(holders)} of {limit.max} runs of {limit.text()} are running: {', '.join(sorted(holders))}",
                )
                return hold, limit_text(key)
        return None, None

    def _wait(self, unit: UnitOfWork, job: Job, hold: Hold, limit: str | None) -> None:
        until = min(job.deadline, hold.until if hold.until is not None else NEVER)
        unit.after(lambda: self.memory.hold(self.ref, until, limit))
        unmet = _unmet_text(hold)
        if job.unmet is None or json.loads(job.unmet)["code"] != hold.reason_code:
            unit.put(replace(job, unmet=unmet), job.key(unit.shard))

    # -- the admission ------------------------------------------------------------------------------------------------

    def _admit(
        self, unit: UnitOfWork, state_key: Key, state: ScheduleState, spec: ScheduleSpec, job: Job, now: int
    ) -> None:
        sealed = _seal(unit, job)
        try:
            order = resolve_order(spec, sealed)
        except Unresolved as problem:
            end_job(unit, job, "skipped", "unresolved_template", now, str(problem))
            return
        limits = limits_of(spec)
        unit.require(state_key, conditions.schedule_is("active", state.generation))
        held: list[str] = []
        for limit in limits:
            key = limit_key(unit.shard, limit)
            held.append(limit_text(key))
            if limit.scope == "schedule":
                own = unit.record(OwnLimit, key) or OwnLimit(namespace=job.namespace, name=job.name)
                unit.put(replace(own, holders=(*own.holders, job.id)), key)
            else:
                unit.apply(take_permit(key, job.id, limit.max))
        run = run_of(sealed, order, tuple(held), now)
        unit.put_new(run, run.key(unit.shard))
        unit.put(replace(sealed, state="pending_launch", unmet=None), job.key(unit.shard))


def limits_of(spec: ScheduleSpec) -> tuple[LimitRef, ...]:
    """Returns the limits that a run of this spec needs.

    Overlap `queue` acts at `concurrency.max` of the schedule's scope, 1 where there is none (SEMANTICS 4); `allow`
    knows no bound but the constraints.
    """
    program = spec.target.program
    wanted = [limit for each in spec.constraints for limit in each.limits(spec.namespace, spec.name, program)]
    if spec.overlap == "queue" and not any(limit.scope == "schedule" for limit in wanted):
        wanted.append(LimitRef(scope="schedule", namespace=spec.namespace, name=spec.name, max=1))
    return tuple(wanted)


def limit_key(shard: int, limit: LimitRef) -> Key:
    if limit.scope == "schedule":
        return keys.own_limit(shard, limit.namespace, limit.name)
    return keys.program_limit(limit.namespace, limit.name)


def limit_text(key: Key) -> str:
    """Returns how a run names a limit that it holds a permit of."""
    return f"{key.pk}|{key.sk}"


def run_of(job: Job, order: str, limits: tuple[str, ...], now: int) -> Run:
    """Returns the run of an admitted job, attempt 1, on its way to the launcher."""
    return Run(
        id=job.id,
        namespace=job.namespace,
        name=job.name,
        incarnation=job.incarnation,
        version=job.version,
        generation=job.generation,
        attempt=job.attempt,
        state="submitting",
        trigger=job.trigger,
        nominal=job.nominal,
        order=order,
        admitted_at=now,
        start_by=now + START_WITHIN_MS,
        satisfied_at=job.satisfied_at,
        interval_start=job.interval_start,
        interval_end=job.interval_end,
        correlation=job.correlation,
        evidence_id=job.evidence_id,
        chunks=job.chunks,
        upstream=job.upstream,
        limits=limits,
    )


def _seal(unit: UnitOfWork, job: Job) -> Job:
    """Launch intent seals the evidence: what comes later belongs to the next job (SEMANTICS 5.4, 5.5)."""
    if job.evidence_id is None or job.chunks is not None:
        return job
    key = keys.evidence(unit.shard, job.namespace, job.name, job.evidence_correlation)
    evidence = unit.record(Evidence, key)
    assert evidence is not None
    assert evidence.id == job.evidence_id
    unit.delete(key)
    return replace(job, chunks=evidence.chunks)


def _holders(unit: UnitOfWork, key: Key, limit: LimitRef) -> frozenset[str]:
    if limit.scope == "schedule":
        own = unit.record(OwnLimit, key)
        return frozenset(own.holders if own else ())
    item = unit.item(key)
    holders = frozenset() if item is None else item.get("holders", frozenset())
    assert isinstance(holders, frozenset)
    return holders


def _aborts(spec: ScheduleSpec, hold: Hold) -> bool:
    if hold.reason_code == "concurrency":
        return any(each.on_unmet == "abort" for each in spec.constraints if each.type == "concurrency")
    return any(each.on_unmet == "abort" for each in spec.constraints if each.type == "time_window")


def _unmet_text(hold: Hold | None) -> str | None:
    if hold is None:
        return None
    return json.dumps({"code": hold.reason_code, "reason": hold.reason, "until": hold.until}, sort_keys=True)
