"""Builds the API's documents from stored records. Pure functions."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from signal import Signals
from typing import Any

from tidegate_api.reads.definitions import DefinitionUnreadable, spec_of, spec_or_none
from tidegate_client.views import (
    EvidenceView,
    JobView,
    OccurrenceView,
    RunView,
    ScheduleView,
    Suspension,
    Unmet,
    Verdict,
    WhyReason,
    WhyView,
)
from tidegate_core.commands.schedule_commands import coming_instants
from tidegate_core.explain.why.reason import Explanation
from tidegate_core.language.triggers.trigger import EventTrigger, TimeTrigger
from tidegate_core.language.values.instants import as_datetime
from tidegate_core.language.values.states import Disposition, RunState
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.run import Run, last_setback
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.runs.run_lifecycle import BEFORE_GATE

SEEN_BY_LAUNCHER = frozenset({"no_report", "cancelled"})
"""Reasons of an end that the launcher saw; then the program did not report the exit code."""
SIGNAL_BASE = 128


def moment(instant: int | None) -> datetime | None:
    return None if instant is None else as_datetime(instant)


def schedule_view(state: ScheduleState, definition: Definition | None, now: int) -> ScheduleView:
    spec, unreadable = None, None
    try:
        spec = None if definition is None else spec_of(definition.spec)
    except DefinitionUnreadable as refusal:
        unreadable = str(refusal)
    return ScheduleView(
        namespace=state.namespace,
        name=state.name,
        status=state.status,
        mode=state.mode if state.status == "suspended" else None,
        until=moment(state.until),
        suspension=_suspension(state),
        version=state.version,
        next=[] if spec is None else [as_datetime(instant) for instant in coming_instants(spec, state, now)],
        fires_left=spec.trigger.fires_left(state.fires) if spec and isinstance(spec.trigger, TimeTrigger) else None,
        changed_at=moment(state.changed_at),
        actor=state.actor,
        reason=state.reason,
        gone=list(state.gone),
        spec={} if definition is None else json.loads(definition.spec),
        unreadable=unreadable,
    )


def _suspension(state: ScheduleState) -> Suspension | None:
    if state.status != "suspended":
        return None
    return Suspension(
        since=as_datetime(state.suspended_at or state.changed_at),
        requested=state.stopped_by is not None,
        actor=state.stopped_by or None,
        reason=state.stopped_for,
    )


def job_view(job: Job, run: Run | None = None, unmet: str | None = None) -> JobView:
    """Returns the view of a job. Once its run has passed the start gate, the job is `launched`.

    Args:
        job: The job.
        run: Run of an admitted job.
        unmet: Blockers of the job, if they are newer than its row.
    """
    blockers = unmet or job.unmet
    run_state = None if run is None else as_concluded(run).state
    launched = run is not None and not RunState(run.state).is_before_gate
    return JobView(
        id=job.id,
        namespace=job.namespace,
        schedule=job.name,
        version=job.version,
        state=Disposition.LAUNCHED if launched else job.state,
        run_state=run_state,
        trigger=job.trigger,
        nominal=moment(job.nominal),
        satisfied_at=moment(job.satisfied_at),
        deadline=moment(job.deadline),
        correlation=job.correlation or None,
        unmet=None if blockers is None else _unmet(blockers),
        forced=None if job.forced is None else _unmet(job.forced),
    )


def gathering_view(evidence: Evidence, definition: Definition | None) -> JobView:
    """Returns the view of a job that gathers evidence, with the missing evidence in the trigger's words."""
    missing = None
    if definition is not None and (spec := spec_or_none(definition.spec)) is not None:
        assert isinstance(spec.trigger, EventTrigger)
        missing = spec.trigger.missing(evidence.counts)
    return JobView(
        id=evidence.id,
        namespace=evidence.namespace,
        schedule=evidence.name,
        version=evidence.version,
        state="pending_trigger",
        trigger="events",
        deadline=moment(evidence.deadline),
        correlation=evidence.value,
        missing=missing,
        evidence=_evidence_view(evidence),
    )


def run_view(run: Run) -> RunView:
    run = as_concluded(run)
    started = run.started_at
    return RunView(
        **_shared(run),
        id=run.id,
        state=run.state,
        attempt=run.attempt,
        lateness_ms=None if started is None else started - run.nominal,
        exit_code=run.exit_code,
        signal=_signal(run),
        reason=run.reason,
        error_class=run.error_class,
        outputs=_object(run.outputs),
        host=run.program_host,
        external_id=run.external_id,
        cancel_requested=run.cancel_requested,
        disposition=run.disposition,
        program=run.order_document,
        last_lines=run.last_lines,
        last_failure=_failure(run),
        last_setback=_setback(run),
        next_attempt_at=moment(run.not_before) if _waits_for_an_attempt(run) else None,
    )


def _waits_for_an_attempt(run: Run) -> bool:
    return run.state in BEFORE_GATE and (run.failure is not None or (run.setback is not None and run.not_before > 0))


def _setback(run: Run) -> dict[str, Any] | None:
    """Returns the reason of the last failed submission, for a run before the start gate; otherwise None."""
    setback = last_setback(run)
    return {**setback, "at": moment(setback["at"])} if setback is not None and run.state in BEFORE_GATE else None


def _failure(run: Run) -> dict[str, Any] | None:
    """Returns the end of the previous attempt, or None."""
    failure = _object(run.failure)
    return {**failure, "ended_at": moment(failure["ended_at"])} if failure else None


def as_concluded(run: Run) -> Run:
    """Returns the run in the state that its owner has processed.

    A reported success counts as the end at once. After another end the owner may decide on another attempt, a moment later or after a
    take-over. So that end is hidden until then; otherwise a client would treat it as the end of the run. A lost run that reported is not
    lost.
    """
    is_lost = run.state == RunState.LOST
    if run.ended_at is None or run.outcome is None or (RunState(run.state).is_ended and not is_lost):
        return run
    if run.outcome == RunState.SUCCEEDED:
        return replace(run, state=run.outcome, reason=None if is_lost else run.reason)
    state = RunState.RUNNING.value if is_lost else run.state
    return replace(run, state=state, ended_at=None, exit_code=None, reason=None, error_class=None)


def occurrence_view(row: LedgerRow) -> OccurrenceView:
    return OccurrenceView(
        **_shared(row),
        job_id=row.job_id,
        disposition=row.disposition,
        reason=row.reason,
        at=as_datetime(row.at),
        state=row.state,
        detail=row.detail,
    )


def why_view(explanation: Explanation) -> WhyView:
    reasons = [
        WhyReason(code=each.code, text=each.text, until=moment(each.until), values=dict(each.values))
        for each in explanation.reasons
    ]
    return WhyView(
        about=explanation.about,
        at=as_datetime(explanation.at),
        local=explanation.local,
        next_change=moment(explanation.next_change),
        reasons=reasons,
    )


def _shared(record: Run | LedgerRow) -> dict[str, Any]:
    """Returns the fields that a run and its ledger row share."""
    return {
        "namespace": record.namespace,
        "schedule": record.name,
        "version": record.version,
        "trigger": record.trigger,
        "nominal": as_datetime(record.nominal),
        "interval_start": moment(record.interval_start),
        "interval_end": moment(record.interval_end),
        "correlation": record.correlation or None,
        "admitted_at": moment(record.admitted_at),
        "started_at": moment(record.started_at),
        "ended_at": moment(record.ended_at),
        "node": record.node,
        "forced": None if record.forced is None else _unmet(record.forced),
        "covered_count": record.covered,
        "covered_from": moment(record.covered_from),
        "covered_to": None if record.covered is None else as_datetime(record.nominal),
    }


def _signal(run: Run) -> str | None:
    """Returns the signal of an exit code 128 + n, if the launcher saw the end and not the program's wrapper."""
    if run.reason not in SEEN_BY_LAUNCHER or run.exit_code is None:
        return None
    try:
        return Signals(run.exit_code - SIGNAL_BASE).name
    except ValueError:
        return None


def _unmet(text: str) -> Unmet:
    fields = json.loads(text)
    verdicts = [
        Verdict(code=each["code"], reason=each.get("reason"), until=moment(each["until"]), values=each["values"])
        for each in fields.get("verdicts", [])
    ]
    return Unmet(
        code=fields["code"],
        reason=fields["reason"],
        at=moment(fields.get("at")),
        until=moment(fields.get("until")),
        verdicts=verdicts,
    )


def _evidence_view(evidence: Evidence) -> EvidenceView:
    return EvidenceView(
        counts=list(evidence.counts),
        first_at=as_datetime(evidence.first_at),
        deadline=moment(evidence.deadline),
    )


def _object(text: str | None) -> dict[str, Any]:
    value = json.loads(text) if text else {}
    return value if isinstance(value, dict) else {}
