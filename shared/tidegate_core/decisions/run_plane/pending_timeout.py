"""What follows when a job has waited for its constraints as long as its schedule allows (SEMANTICS 7.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, assert_never

from tidegate_core.decisions.run_plane.jobs import end_job
from tidegate_core.decisions.run_plane.unmet import Unmet, unmet_text
from tidegate_core.effects import Notice
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.records.run_plane import Job
from tidegate_core.transactions.unit_of_work import UnitOfWork


class Late(NamedTuple):
    """A job after its time-out was looked at.

    Attributes:
        unmet: What it still waits for.
        has_ended: It has expired.
    """

    job: Job
    unmet: list[Unmet]
    has_ended: bool = False


def after_pending_timeout(unit: UnitOfWork, spec: ScheduleSpec, job: Job, unmet: Sequence[Unmet], now: int) -> Late:
    """Returns the job as it is to be decided on: unchanged while its time-out is still to come.

    Nothing but the deadline says that it has passed, so a successor decides the same without a further row.
    """
    if now < job.deadline:
        return Late(job, list(unmet))
    match spec.pending_timeout_action:
        case "abort":
            end_job(unit, job, "expired", "constraint_timeout", now, unmet_text(unmet) if unmet else None)
            return Late(job, list(unmet), has_ended=True)
        case "force":
            return _forced(job, unmet)
        case "alert":
            return _alerted(unit, job, unmet)
    assert_never(spec.pending_timeout_action)


def _forced(job: Job, unmet: Sequence[Unmet]) -> Late:
    """Only permits are waited for: more runs at a time than a limit lets run are never worth it."""
    limits = [each for each in unmet if each.is_limit]
    if limits or not unmet:
        return Late(job, limits)
    return Late(replace(job, forced=unmet_text(unmet)), [])


def _alerted(unit: UnitOfWork, job: Job, unmet: Sequence[Unmet]) -> Late:
    if not unmet or job.alerted:
        return Late(job, list(unmet))
    reasons = "; ".join(each.hold.reason for each in unmet)
    unit.after(Notice("job_waits_too_long", {"job": job.id, "schedule": job.ref, "unmet": reasons}))
    return Late(replace(job, alerted=True), list(unmet))
