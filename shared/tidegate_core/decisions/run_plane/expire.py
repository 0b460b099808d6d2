"""A composite that was not satisfied in time is aborted (SEMANTICS 6.6), once nothing that could prevent it is uncounted.

Downtime must not change results: evidence is judged by append times, so the decision waits for what may have come in time
(`watermark.py`), and is queued behind the counting of all that lies in the inbox then.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.decisions.run_plane.definitions import spec_of
from tidegate_core.decisions.run_plane.jobs import end_evidence, write_ledger
from tidegate_core.decisions.run_plane.standing import present_evidence
from tidegate_core.records.run_plane import Evidence, Job, ScheduleState, TimerRow
from tidegate_core.store import keys
from tidegate_core.store.values import Key
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.triggers.base import EventTrigger


@dataclass(frozen=True, slots=True)
class ExpireEvidence:
    """Decides on a timer row of kind `E`.

    Attributes:
        unread: What was not read in time, for the ledger.
    """

    row: TimerRow
    unread: tuple[str, ...] = ()
    stale: tuple[Key, ...] = ()
    name: str = "expire"

    @property
    def about(self) -> str:
        return self.row.ref

    def decide(self, unit: UnitOfWork, now: int) -> None:
        ref, _ = self.row.ref.rsplit("#", 1)
        namespace, schedule = ref.split("/", 1)
        evidence = unit.record(Evidence, keys.evidence(unit.shard, namespace, schedule, self.row.detail or ""))
        unit.forget_row(self.row.key(unit.shard))
        if evidence is None or evidence.job or evidence.deadline != self.row.at:
            return
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, namespace, schedule))
        if state is not None and present_evidence(state, evidence, now).deadline != evidence.deadline:
            return  # Its clock stands still, or has stood still: the resume sets it going with a row of its own.
        spec = spec_of(unit, namespace, schedule, evidence.version)
        assert spec is not None
        assert isinstance(spec.trigger, EventTrigger)
        expire_evidence(unit, evidence, spec.trigger, now, self.unread)
        end_evidence(unit, evidence, now)


def expire_evidence(
    unit: UnitOfWork, evidence: Evidence, trigger: EventTrigger, now: int, unread: tuple[str, ...] = ()
) -> None:
    """Writes down that evidence did not become a job in time, and what was missing."""
    detail = trigger.missing(evidence.counts) or ""
    if unread:
        detail += f"; did not wait for {', '.join(unread)}"
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
        correlation=evidence.correlation or None,
    )
    write_ledger(unit, job, "expired", "trigger_timeout", now, detail)
