"""Updates the run history of a schedule in the transactions that admit a run, end it, or withdraw it."""

from __future__ import annotations

from dataclasses import replace

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.rows import keys
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.run_history import NO_RUNS, PastRuns
from tidegate_core.writes.unit_of_work import UnitOfWork


def remembered_by(spec: ScheduleSpec) -> int:
    """Returns how many admissions the schedule's constraints read; 0 when they read none."""
    return max((each.admissions_remembered for each in spec.constraints), default=0)


def past_of(unit: UnitOfWork, spec: ScheduleSpec, job: Job) -> PastRuns:
    """Returns the run history for the job's constraints. It is read only when a constraint needs it."""
    if not remembered_by(spec):
        return NO_RUNS
    known = unit.record(PastRuns, keys.past_runs(unit.shard, job.namespace, job.name))
    if known is None or known.incarnation != job.incarnation:
        return PastRuns(namespace=job.namespace, name=job.name, incarnation=job.incarnation)
    return known


def note_admission(unit: UnitOfWork, spec: ScheduleSpec, job: Job, now: int) -> bool:
    """Counts an admission. Returns whether the run's end must be counted as well."""
    most = remembered_by(spec)
    if not most:
        return False
    past = past_of(unit, spec, job)
    # Sorted, because a new owner's clock may be slightly behind its predecessor's. One more is kept for each open
    # run, this one included: if a run is withdrawn, the admission that it pushed out would be missing.
    still_open = past.open + 1
    admitted = tuple(sorted((*past.admitted, now)))[-(most + still_open) :]
    unit.put(replace(past, admitted=admitted, open=still_open), past.key(unit.shard))
    return True


def note_end(unit: UnitOfWork, run: Run) -> None:
    """Counts the end of a run whose admission was counted. A run that was cancelled before its start is withdrawn."""
    assert run.ended_at is not None
    past = _past_with(unit, run)
    if past is None:
        return
    if run.started_at is not None:
        finished = max(run.ended_at, past.finished or 0)
        succeeded = max(run.ended_at, past.succeeded or 0) if run.outcome == "succeeded" else past.succeeded
        past = replace(past, finished=finished, succeeded=succeeded)
    elif never_started(run):
        past = _without(past, run.admitted_at)
    unit.put(replace(past, open=past.open - 1), past.key(unit.shard))


def never_started(run: Run) -> bool:
    """Returns whether a run was cancelled, or becomes a job again, before its program started.

    Then no rate counts it.
    """
    return run.started_at is None and run.outcome in {None, "closed", "killed"}


def reverse_admission(unit: UnitOfWork, run: Run) -> None:
    """Withdraws the admission of a run that becomes a job again."""
    past = _past_with(unit, run)
    if past is not None:
        unit.put(replace(_without(past, run.admitted_at), open=past.open - 1), past.key(unit.shard))


def _past_with(unit: UnitOfWork, run: Run) -> PastRuns | None:
    """Returns the history that counts this run; None when its schedule was recreated since."""
    if not run.remembered:
        return None
    past = unit.record(PastRuns, keys.past_runs(unit.shard, run.namespace, run.name))
    return past if past is not None and past.incarnation == run.incarnation else None


def _without(past: PastRuns, admitted_at: int) -> PastRuns:
    """Removes one of several equal instants. It may be gone already, pushed out by later ones."""
    if admitted_at not in past.admitted:
        return past
    place = past.admitted.index(admitted_at)
    return replace(past, admitted=past.admitted[:place] + past.admitted[place + 1 :])
