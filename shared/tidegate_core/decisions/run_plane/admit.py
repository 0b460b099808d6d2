"""Admission: a job whose constraints hold becomes a run, with all its permits, in one transaction (I4, I7).

Check and act are the same write: what this decision read is what the transaction's conditions demand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

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
SUBMIT_WITHIN_MS = 60 * 60_000
"""SEMANTICS 13: until the launcher has taken it."""
ADMITTED_TOGETHER = 8
"""Jobs of one schedule in one decision: four actions each, and a schedule has one decision under way."""
NEVER = 1 << 62


class _Unmet(NamedTuple):
    """One thing that stands in the way: by its own constraint's word the job waits for it, or is aborted by it."""

    hold: Hold
    aborts: bool
    limit: str | None = None
    """The limit's key, if it is one."""


@dataclass(frozen=True, slots=True)
class AdmitNext:
    """Decides on the first waiting jobs of a schedule; first come, first served (overlap `queue` and `allow`).

    Attributes:
        decided: Called when that is in the store, with whether the jobs behind them can be decided on now.
        most: Jobs to decide on.
    """

    ref: str
    memory: Memory
    decided: Callable[[bool], None]
    most: int = ADMITTED_TOGETHER
    name: str = "admit"

    @property
    def about(self) -> str:
        return self.ref

    @property
    def stale(self) -> tuple[Key, ...]:
        """Limits that other shards' owners write too."""
        return self.memory.shared_limits(self.ref)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, schedule = self.ref.split("/", 1)
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, namespace, schedule))
        goes_on = False
        if state is not None and state.status == "active":
            goes_on = self._decide_first(unit, state, now)
        unit.after(lambda: self.decided(goes_on))

    def _decide_first(self, unit: UnitOfWork, state: ScheduleState, now: int) -> bool:
        """Goes through the jobs in order until one has to wait; returns whether there may be more to do."""
        done = 0
        for job_id in self.memory.waiting(self.ref):
            job = unit.record(Job, keys.job(unit.shard, job_id))
            if job is None or job.state != "pending_constraint":
                continue
            if job.generation != state.generation:
                return False  # The request that ended it is ending its jobs, page by page.
            if not self._decide_one(unit, state, job, now):
                return False
            done += 1
            if done >= self.most or self.memory.shared_limits(self.ref):
                return True  # A transaction takes one permit of a limit that other shards write too.
        return False

    def _decide_one(self, unit: UnitOfWork, state: ScheduleState, job: Job, now: int) -> bool:
        """Returns False when the job waits."""
        spec = spec_of(unit, job.namespace, job.name, job.version)
        assert spec is not None
        unmet = self._unmet(unit, spec, job, now)
        aborting = next((each.hold for each in unmet if each.aborts), None)
        if job.deadline <= now:
            end_job(unit, job, "expired", "constraint_timeout", now, _unmet_text(unmet) if unmet else None)
        elif not unmet:
            self._admit(unit, state, spec, job, now)
        elif aborting is not None:
            end_job(unit, job, "skipped", aborting.reason_code, now, aborting.reason)
        else:
            self._wait(unit, job, unmet)
            return False
        return True

    # -- constraints --------------------------------------------------------------------------------------------------

    def _unmet(self, unit: UnitOfWork, spec: ScheduleSpec, job: Job, now: int) -> list[_Unmet]:
        """Returns all that stands in the way, evaluated at one instant (SEMANTICS 7.1)."""
        verdicts = [(constraint.check(now), constraint.on_unmet == "abort") for constraint in spec.constraints]
        unmet = [_Unmet(verdict, aborts) for verdict, aborts in verdicts if isinstance(verdict, Hold)]
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
                unmet.append(_Unmet(hold, limit.on_unmet == "abort", limit_text(key)))
        return unmet

    def _wait(self, unit: UnitOfWork, job: Job, unmet: Sequence[_Unmet]) -> None:
        until = _until(unmet)
        limits = [each.limit for each in unmet if each.limit is not None]
        unit.after(lambda: self.memory.hold(self.ref, min(job.deadline, NEVER if until is None else until), limits))
        if job.unmet is None or json.loads(job.unmet).get("codes") != _codes(unmet):
            unit.put(replace(job, unmet=_unmet_text(unmet)), job.key(unit.shard))

    # -- the admission ------------------------------------------------------------------------------------------------

    def _admit(self, unit: UnitOfWork, state: ScheduleState, spec: ScheduleSpec, job: Job, now: int) -> None:
        sealed = _seal(unit, job)
        try:
            order = resolve_order(spec, sealed)
        except Unresolved as problem:
            end_job(unit, sealed, "skipped", "unresolved_template", now, str(problem))
            return
        limits = limits_of(spec)
        unit.require(state.key(unit.shard), conditions.schedule_is("active", state.generation))
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
        start_by=now + SUBMIT_WITHIN_MS,
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


def _codes(unmet: Sequence[_Unmet]) -> list[str]:
    return [each.hold.reason_code for each in unmet]


def _until(unmet: Sequence[_Unmet]) -> int | None:
    """Before the last of these instants one of them certainly still stands in the way."""
    return max((each.hold.until for each in unmet if each.hold.until is not None), default=None)


def _unmet_text(unmet: Sequence[_Unmet]) -> str:
    """Returns all that stands in the way; `code` is the first one's, for readers who show one."""
    reasons = "; ".join(each.hold.reason for each in unmet)
    codes = _codes(unmet)
    return json.dumps({"code": codes[0], "codes": codes, "reason": reasons, "until": _until(unmet)}, sort_keys=True)
