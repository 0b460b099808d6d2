"""Values for a launch: templates resolved at the admission, the run record, and the covered instants."""

from __future__ import annotations

import json

from tidegate_core.language.definitions.run_policies import Priority, class_of
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.targets.argument_templates import RunValues, UpstreamValues, resolve_program
from tidegate_core.language.triggers.search import STEPS_PER_SEARCH, Next, Search
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run

COVERED_TOLD_MAX = 1_000
"""Instants in a program's context: 25 KB in the run's item."""


SUBMIT_WITHIN_MS = 60 * 60_000
"""Deadline for the launcher to accept an attempt."""


def values_of(job: Job) -> RunValues:
    """Returns the values that templates of a job can use."""
    upstream = json.loads(job.upstream) if job.upstream else None
    return RunValues(
        run_id=job.id,
        attempt=job.attempt,
        nominal=job.nominal,
        interval=None
        if job.interval_start is None or job.interval_end is None
        else (job.interval_start, job.interval_end),
        correlation=job.correlation or None,
        upstream=None
        if upstream is None
        else UpstreamValues(run_id=upstream["run_id"], args=tuple(upstream["args"]), outputs=upstream["outputs"]),
    )


def resolve_order(spec: ScheduleSpec, job: Job) -> str:
    """Returns the run's order as JSON: the program with all templates resolved.

    Raises:
        Unresolved: A template names a value that this occurrence does not have.
    """
    program = resolve_program(spec.program, values_of(job))
    order = {
        "program_type": spec.program.type,
        "file": program.file,
        "args": list(program.args),
        "conf": dict(program.conf),
        "env": dict(program.env),
        "properties": dict(spec.program.properties),
    }
    covered = covered_instants(spec, job)
    if covered:
        order["covered"] = [format_instant(instant) for instant in covered]
    return json.dumps(order, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def run_of(job: Job, priority: Priority, order: str, limits: tuple[str, ...], now: int) -> Run:
    """Returns the run of an admitted job, at attempt 1 before submission. The priority is that of the job's version."""
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
        covered=job.covered,
        covered_from=job.covered_from,
        forced=job.forced,
        free_attempts=job.free_attempts,
        catch_up=job.catch_up,
        missing=job.missing,
        due=job.due,
        priority=class_of(priority, catch_up=bool(job.catch_up)),
    )


def covered_instants(spec: ScheduleSpec, job: Job) -> list[int]:
    """Returns the nominal times of a job that stands for several; empty when they cannot be listed completely.

    They may be too many or too far apart to find quickly, or one of them may have ended otherwise. Then the data
    interval tells the program what to process.
    """
    if job.covered is None or job.covered > COVERED_TOLD_MAX or not isinstance(spec.trigger, TimeTrigger):
        return []
    # Every caller must find the same, so this search has its own steps, independent of earlier searches.
    search = Search(STEPS_PER_SEARCH)
    found: list[int] = []
    following = Next(job.begins)
    while (instant := following.found) is not None and instant <= job.nominal and len(found) <= job.covered:
        found.append(instant)
        following = spec.trigger.seek(instant, job.ref, search)
    is_all = len(found) == job.covered and not (following.is_bound and following.is_due(job.nominal))
    return found if is_all else []
