"""What follows when a job has waited for its constraints as long as its schedule allows (SEMANTICS 7.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, assert_never

from tidegate_core.admission.eligibility import Blocker, unmet_text
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.rows.effects import Notice
from tidegate_core.rows.job import Job
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard.jobs import end_job
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS, served_deadline, without_span
from tidegate_core.shard.schedule_state import last_stops
from tidegate_core.writes.unit_of_work import UnitOfWork


class Late(NamedTuple):
    """A job after its time-out was looked at.

    Attributes:
        unmet: What it still waits for.
        has_ended: It has expired.
        is_forced: It goes as soon as the limits of `concurrency` let it, and asks for nothing else.
    """

    job: Job
    unmet: list[Blocker]
    has_ended: bool = False
    is_forced: bool = False


def served_until(state: ScheduleState, job: Job, outages: Sequence[Outage]) -> int:
    """Returns when the job has waited for as long as its schedule allows: while nobody serves its shard it does not wait (DESIGN 6).

    Its deadline counts the schedule's suspended spans already: a moment of both stands still once.

    Args:
        state: Its schedule's.
        job: As the state makes it.
        outages: Facts of its shard.
    """
    for begin, end in reversed(last_stops(state)):
        outages = without_span(outages, begin, end)
    return served_deadline(job.timed_since, job.deadline, outages)


def after_pending_timeout(
    unit: UnitOfWork, spec: ScheduleSpec, job: Job, unmet: Sequence[Blocker], deadline: int, now: int
) -> Late:
    """Returns the job as it is to be decided on: unchanged while its time-out is still to come.

    Nothing but the deadline (`served_until`) says that it has passed, so a successor decides the same without a further row. What
    stood in the way may be gone when somebody looks: a gap in service that is too short to be an outage makes nobody expire. One
    whose time-out passed before that had waited, behind others, for what is there only now.
    """
    action = spec.pending_timeout_action
    if now < deadline or (not unmet and (action != "abort" or now < deadline + OUTAGE_GRACE_MS)):
        return Late(job, list(unmet))
    match action:
        case "abort":
            end_job(unit, job, "expired", "constraint_timeout", now, unmet_text(unmet, now) if unmet else None)
            return Late(job, list(unmet), has_ended=True)
        case "force":
            return _forced(job, unmet, now)
        case "alert":
            return _alerted(unit, job, unmet)
    assert_never(action)


def _forced(job: Job, unmet: Sequence[Blocker], now: int) -> Late:
    """Only permits are waited for: more runs at a time than a limit lets run are never worth it."""
    limits = [each for each in unmet if each.is_limit]
    if limits:
        return Late(job, limits, is_forced=True)
    return Late(replace(job, forced=unmet_text(unmet, now)), [])


def _alerted(unit: UnitOfWork, job: Job, unmet: Sequence[Blocker]) -> Late:
    if job.alerted:
        return Late(job, list(unmet))
    reasons = "; ".join(each.hold.reason for each in unmet)
    unit.after(Notice("job_waits_too_long", {"job": job.id, "schedule": job.ref, "unmet": reasons}))
    return Late(replace(job, alerted=True), list(unmet))
