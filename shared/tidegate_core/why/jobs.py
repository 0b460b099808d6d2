"""Why a job waits: everything that would have to go for it to run."""

from __future__ import annotations

from dataclasses import replace

from tidegate_core.constraints.base import Compared
from tidegate_core.decisions.run_plane.memory import PENDING_CONSTRAINT
from tidegate_core.decisions.run_plane.standing import admits
from tidegate_core.model.instants import format_instant
from tidegate_core.records.run_plane import Evidence, Job
from tidegate_core.triggers.base import EventTrigger
from tidegate_core.why.facts import Facts
from tidegate_core.why.looking import Line, Look, Views, line_of, look_at
from tidegate_core.why.reason import Reason
from tidegate_core.why.runs import of_run
from tidegate_core.why.standing import standing


def of_job(views: Views, facts: Facts, job: Job, line: Line | None = None) -> list[Reason]:
    """Returns at least one reason why the job does not run yet; its run's, once it was admitted.

    Args:
        views: See `Views`.
        facts: Of its schedule.
        job: An open one.
        line: Of the schedule, where it is at hand.

    Raises:
        NotAtHand: Something was not read yet: read it, and ask again.
    """
    if job.state != PENDING_CONSTRAINT:
        return [of_run(run, facts.now) for run in facts.runs if run.id == job.id]
    reasons = _of_schedule(facts)
    line = line or line_of(views, facts)
    look = line.look_of(job)
    if not look.was_reached:
        reasons += _behind(job, line)
        look = look_at(views, facts, job)
    reasons += look.holds
    return [_about(reason, job) for reason in reasons or [_decided(look)]]


def _of_schedule(facts: Facts) -> list[Reason]:
    """A schedule that is drained admits what waits."""
    return [each for each in standing(facts) if each.code != "suspended" or not admits(facts.state)]


def _behind(job: Job, line: Line) -> list[Reason]:
    ahead = line.jobs[: [each.id for each in line.jobs].index(job.id)]
    first = next((each for each in ahead if line.look_of(each).holds), None)
    if first is None:
        return []  # They are just going or ending.
    text = f"{len(ahead)} of the schedule's jobs are before it; the first is {first.id}, which waits itself"
    return [Reason("behind", text, None, {"ahead": len(ahead), "first": first.id})]


def _decided(look: Look) -> Reason:
    if look.ends_as is not None:
        return Reason("being_decided", f"it ends at the next look: {look.ends_as}", None, {"ends_as": look.ends_as})
    return Reason("being_decided", "nothing is in its way: it is decided on at the next look")


def _about(reason: Reason, job: Job) -> Reason:
    values: dict[str, Compared] = {**reason.values, "job": job.id, "nominal": format_instant(job.nominal)}
    return replace(reason, values=values)


def of_evidence(facts: Facts, evidence: Evidence) -> Reason:
    """Returns what the trigger waits for, in its own words."""
    spec = facts.spec
    assert spec is not None
    assert isinstance(spec.trigger, EventTrigger)
    missing = spec.trigger.missing(evidence.counts) or "nothing, it settles"
    paired = f" for {evidence.value}" if evidence.value else ""
    text = f"since {format_instant(evidence.first_at)} some of it has come{paired}; missing: {missing}"
    values: dict[str, Compared] = {
        "job": evidence.id,
        "missing": missing,
        "counts": ",".join(map(str, evidence.counts)),
        "first_at": format_instant(evidence.first_at),
    }
    return Reason("waiting_for_events", text, evidence.deadline, values)
