"""Reasons why a job waits, in two depths.

For `tidegate why`, `of_job` repeats the admission decision and names all blockers. For the job list, which shows up to 1,000 jobs, `waits_for`
reads rows alone: the stored verdict, the suspension of the schedule, or the jobs before it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from tidegate_core.explain.why.admission_dry_run import DryRunResult, Line, Views, dry_run, line_of
from tidegate_core.explain.why.reason import CODES, Reason, earliest
from tidegate_core.explain.why.run_reasons import of_run
from tidegate_core.explain.why.schedule_reasons import whole_schedule
from tidegate_core.explain.why.schedule_snapshot import Facts
from tidegate_core.language.constraints.constraint import Compared
from tidegate_core.language.triggers.composite.composite_nodes import without
from tidegate_core.language.triggers.composite.ticks import TickLeaf
from tidegate_core.language.triggers.on_event.run_status import RunStatusTrigger
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.job import Job
from tidegate_core.shard.schedule_state import (
    fires,
    is_of_ended_generation,
    launches,
    oldest_kept_generation,
    version_of,
)
from tidegate_core.shard.shard_cache import PENDING_CONSTRAINT


def of_job(views: Views, facts: Facts, job: Job, line: Line | None = None) -> list[Reason]:
    """Returns at least one reason why a job does not run; for an admitted job the reason of its run.

    Args:
        views: See `Views`.
        facts: Facts of the schedule.
        job: Open job.
        line: Waiting jobs of the schedule; None: they are computed.

    Raises:
        NotAtHand: A row is missing: read it, and call again.
    """
    if job.state != PENDING_CONSTRAINT:
        return [of_run(run, facts.now) for run in facts.runs if run.id == job.id]
    reasons = of_schedule(facts)
    line = line or line_of(views, facts)
    result = line.result_of(job)
    if not result.was_reached:
        reasons += _behind(job, line)
        result = dry_run(views, facts, job)
    reasons += result.holds
    return [_about(reason, job) for reason in reasons or [_decided(result)]]


def first_of(job: Job, line: Line) -> Reason:
    """Returns the first reason why a waiting job does not run, from the dry run of all jobs."""
    result = line.result_of(job)
    if not result.was_reached:
        return Reason("behind", CODES["behind"])
    return result.holds[0] if result.holds else _decided(result)


def of_schedule(facts: Facts) -> list[Reason]:
    """Returns the reasons that hold back all jobs of the schedule. A draining schedule still launches its waiting jobs."""
    return [each for each in whole_schedule(facts) if each.code != "suspended" or not launches(facts.state)]


def _behind(job: Job, line: Line) -> list[Reason]:
    ahead = line.jobs[: [each.id for each in line.jobs].index(job.id)]
    first = next((each for each in ahead if line.result_of(each).holds or line.result_of(each).goes), None)
    if first is None:
        return []  # The jobs before it are just ending.
    how = "which waits itself" if line.result_of(first).holds else "which has no blocker"
    text = f"{len(ahead)} of the schedule's jobs are before it; the first is {first.id}, {how}"
    return [Reason("behind", text, None, {"ahead": len(ahead), "first": first.id})]


def _decided(result: DryRunResult) -> Reason:
    if result.ends_as is not None:
        return Reason(
            "being_decided", f"it ends at the next decision: {result.ends_as}", None, {"ends_as": result.ends_as}
        )
    return Reason("being_decided", "nothing blocks it: the owner decides about it next")


def _about(reason: Reason, job: Job) -> Reason:
    values: dict[str, Compared] = {**reason.values, "job": job.id, "nominal": format_instant(job.nominal)}
    return replace(reason, values=values)


def of_evidence(facts: Facts, evidence: Evidence) -> Reason:
    """Returns which events the trigger still needs; for evidence that an update or a delete ends page by page, the reason of that end."""
    if facts.state.status == "deleted":
        return _being_ended("cancelled/schedule_deleted", evidence)
    if is_of_ended_generation(facts.state, evidence):
        is_former = version_of(facts.state, evidence.version) != facts.state.version
        return _being_ended("cancelled/superseded" if is_former else "cancelled/suspended", evidence)
    # The version of the evidence counts: an update binds or ends evidence in several transactions.
    spec = facts.spec_of(evidence.version)
    if spec is None or not isinstance(spec.trigger, EventTrigger):
        return _being_ended("cancelled/superseded", evidence)
    trigger, counts = _left(facts, spec.trigger, evidence)
    if trigger is None:
        return _being_ended("expired/upstream_deleted", evidence)
    missing = trigger.missing(counts) or "nothing, it settles"
    paired = f" for {evidence.value}" if evidence.value else ""
    text = f"since {format_instant(evidence.first_at)} some of it has come{paired}; missing: {missing}"
    values: dict[str, Compared] = {
        "job": evidence.id,
        "missing": missing,
        "counts": ",".join(map(str, evidence.counts)),
        "first_at": format_instant(evidence.first_at),
    }
    until = evidence.deadline
    # `at_least_every` asks for a job with the evidence counted by then.
    reminder = facts.reminder if fires(facts.state) else None
    if reminder is not None:
        text += f"; {asks_for_a_job(facts, reminder)}"
        until = reminder if until is None else min(reminder, until)
    tick = facts.state.next_tick
    if tick is not None and _lacks_a_tick(trigger, counts):
        named = "no instant of it was found before" if facts.state.next_tick_is_bound else "its next instant is"
        text += f"; {named} {format_instant(tick)}"
        until = tick if until is None else min(tick, until)
    return Reason("waiting_for_events", text, until, values)


def asks_for_a_job(facts: Facts, reminder: Instant) -> str:
    """Returns the text about the instant at which `at_least_every` asks for a job."""
    text = f"at_least_every asks for a job at {format_instant(reminder)}"
    return text if reminder > facts.now else f"{text}, once all is read that was announced before"


def _lacks_a_tick(trigger: EventTrigger, counts: tuple[int, ...]) -> bool:
    pairs = zip(trigger.leaves(), counts, strict=True)
    return any(isinstance(leaf, TickLeaf) and leaf.shortfall(count) is not None for leaf, count in pairs)


def _left(facts: Facts, trigger: EventTrigger, evidence: Evidence) -> tuple[EventTrigger | None, tuple[int, ...]]:
    """Returns the trigger without deleted upstream schedules, and the counts of its leaves.

    An upstream schedule whose runs were counted before its delete stays in the trigger.
    """
    namespace, leaves = facts.state.namespace, trigger.leaves()
    come = {
        leaf.upstream_ref(namespace)
        for leaf, count in zip(leaves, evidence.counts, strict=True)
        if isinstance(leaf, RunStatusTrigger) and leaf.shortfall(count) is None
    }
    gone = frozenset(facts.state.gone) - come if evidence.version == facts.state.version else frozenset()
    left = without(trigger, namespace, gone)
    if left is None:
        return None, ()
    kept = left.leaves()
    counts = zip(leaves, evidence.counts, strict=True)
    return left, tuple(count for leaf, count in counts if any(leaf is each for each in kept))


def _being_ended(code: str, evidence: Evidence) -> Reason:
    values: dict[str, Compared] = {"job": evidence.id, "first_at": format_instant(evidence.first_at)}
    return Reason(code, f"{CODES[code]}: what has come since {values['first_at']} is being ended", None, values)


def waits_for(facts: Facts, job: Job, line: Sequence[Job], *, has_all: bool) -> str:
    """Returns at least one reason why a job in `pending_constraint` waits, in the form of `Job.unmet`.

    Args:
        facts: Facts of the schedule; jobs, definitions and runs are not needed.
        job: Waiting job.
        line: Waiting jobs of the schedule in the order of `in_line`, including the job.
        has_all: Whether the caller has read all open jobs of the shard.
    """
    reasons = of_schedule(facts)
    if job.unmet is None:
        before = _before(facts, job, line, has_all)
        return _text([*reasons, *before] or [_undecided(job)], facts.now)
    return job.unmet if not reasons else _with_verdict(reasons, job.unmet, facts.now)


def _undecided(job: Job) -> Reason:
    since = format_instant(job.satisfied_at)
    text = f"it waits since {since}, and no verdict of it is written yet"
    return Reason("being_decided", text, None, {"satisfied_at": since})


def _before(facts: Facts, job: Job, line: Sequence[Job], has_all: bool) -> list[Reason]:
    first_kept = oldest_kept_generation(facts.state)
    ahead = [each for each in takewhile(lambda each: each.id != job.id, line) if each.generation >= first_kept]
    if not ahead:
        return []
    number = f"{len(ahead)}" if has_all else f"at least {len(ahead)}"
    first = f"the first is {ahead[0].id}, since {format_instant(ahead[0].satisfied_at)}"
    values: dict[str, Compared] = {"ahead": len(ahead), "first": ahead[0].id}
    return [Reason("behind", f"{number} of the schedule's jobs are before it; {first}", None, values)]


def _text(reasons: list[Reason], now: Instant) -> str:
    told = {
        "at": now,
        "code": reasons[0].code,
        "codes": [each.code for each in reasons],
        "reason": "; ".join(each.text for each in reasons),
        "until": earliest(reasons),
        "verdicts": [
            {"code": each.code, "reason": each.text, "until": each.until, "values": dict(each.values)}
            for each in reasons
        ],
    }
    return json.dumps(told, sort_keys=True)


def _with_verdict(reasons: list[Reason], unmet: str, now: Instant) -> str:
    """Returns the reasons of the schedule before the stored verdict: while a schedule is stopped its jobs are not decided, so verdicts grow old."""
    told, verdict = json.loads(_text(reasons, now)), json.loads(unmet)
    at = verdict.get("at")
    when = "" if at is None else f" at {format_instant(at)}"
    told["reason"] += f"; when it was decided on last{when}: {verdict['reason']}"
    told["codes"] += verdict.get("codes", [])
    told["verdicts"] += verdict.get("verdicts", [])
    return json.dumps(told, sort_keys=True)
