"""What a schedule's state allows, and how it affects pending jobs and evidence; also the definition that a state names.

No job stores any of this: a suspend or update writes one item, and readers of a job apply the state to it. So one
write parks, releases or rebinds thousands of jobs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.writes.unit_of_work import UnitOfWork

STRETCHES_MAX = 16
"""Ranges of carried versions, each ended by an update with `finish_old`.

Beyond that, jobs of the oldest range complete as created.
"""


def fires(state: ScheduleState) -> bool:
    """Returns whether its trigger is active: events count, instants create jobs."""
    return state.status == "active" or parks(state)


def admits(state: ScheduleState) -> bool:
    """Returns whether waiting jobs may be admitted: after a resume only once the backlog is cut."""
    return state.shedding is None and launches(state)


def launches(state: ScheduleState) -> bool:
    """Returns whether admitted runs may be launched, retries included; a backlog cut does not affect them."""
    return state.status == "active" or (state.status == "suspended" and state.mode == "drain")


def parks(state: ScheduleState) -> bool:
    """Returns whether its trigger creates jobs that are not launched."""
    return state.status == "suspended" and state.mode == "hold"


def fires_through(state: ScheduleState, now: int) -> int:
    """Returns the time up to which its trigger creates jobs in this state.

    A planned end of a hold counts even when it is carried out late. Jobs up to it are parked within the bounds of a
    hold; instants from it on follow overlap policy and `catchup`.
    """
    return now if state.until is None or not parks(state) else min(now, state.until - 1)


def clocks_stopped(state: ScheduleState) -> bool:
    """Returns whether the clocks of time-outs are stopped."""
    return state.status == "suspended" and state.mode in {"hold", "freeze"}


def keeps_pending(state: ScheduleState) -> bool:
    """Returns whether work that was pending before the last request, and is bound to the present version, is kept."""
    return state.status == "active" or (state.status == "suspended" and state.mode != "drop")


def oldest_kept_generation(state: ScheduleState) -> int:
    """Returns the oldest generation whose pending jobs continue."""
    return state.generation if state.kept_from is None else state.kept_from


def backlog_through(state: ScheduleState) -> int:
    """Returns the latest satisfaction time in the backlog of the last resume."""
    return state.changed_at if state.backlog_through is None else state.backlog_through


def awaits_backlog_cut(state: ScheduleState, job: Job) -> bool:
    """Returns whether a waiting job is in a backlog that a resume is still cutting."""
    return state.shedding is not None and job.satisfied_at <= backlog_through(state)


def is_cut(state: ScheduleState, job: Job) -> bool:
    """Returns whether a job of that backlog ends in any case: its resume keeps no job of the backlog."""
    if not awaits_backlog_cut(state, job):
        return False
    return state.shedding == "none" or (state.cut_through is not None and job.satisfied_at <= state.cut_through)


def stopped(state: ScheduleState, now: int) -> int:
    """Returns the total time, in ms, for which the clocks of time-outs were stopped up to now."""
    return state.stopped_ms + (goes_on_at(state, now) - state.suspended_at if clocks_stopped(state) else 0)


def goes_on_at(state: ScheduleState, now: int) -> int:
    """Returns the time up to which the clocks of a suspended schedule were stopped.

    A planned end counts even when it is carried out late. A schedule that counts events during the suspension
    (`hold`) must treat later events as if it had ended in time. One that ignores them (`freeze`) continues where it
    counts events again.
    """
    promised = now if state.until is None or not parks(state) else min(now, state.until)
    return max(state.suspended_at, promised)  # By another node's clock the suspension may have begun later.


def stopped_by(state: ScheduleState, at: int) -> int:
    """Returns the total time, in ms, for which the clocks had been stopped at a past instant.

    Unlike `stopped`, it handles events that were appended before or during a suspension and counted after it.
    Suspensions that the state no longer names count as past.
    """
    return stopped(state, at) - sum(max(0, end - max(at, begin)) for begin, end in last_stops(state))


def last_stops(state: ScheduleState) -> list[tuple[int, int]]:
    """Returns begin and end of the last ended suspensions that stopped the clocks, in order."""
    return list(zip(state.last_stops[::2], state.last_stops[1::2], strict=True))


def version_of(state: ScheduleState, version: int) -> int:
    """Returns the version to which work of `version` is bound now."""
    pairs = zip(state.carried[::2], state.carried[1::2], strict=True)
    return next((last for first, last in pairs if first <= version <= last), version)


def carried_on(state: ScheduleState) -> tuple[int, ...]:
    """Returns the ranges of carried versions after the present one is carried to the next."""
    following = state.version + 1
    if state.carried and state.carried[-1] == state.version:
        return (*state.carried[:-1], following)
    return (*state.carried, state.version, following)[-2 * STRETCHES_MAX :]


def is_of_ended_generation(state: ScheduleState, evidence: Evidence) -> bool:
    """Returns whether a request in the state ends this evidence; the page that ends it may be outstanding."""
    if version_of(state, evidence.version) != state.version:
        return True
    return evidence.generation is not None and evidence.generation < oldest_kept_generation(state)


def rebind_job(state: ScheduleState, job: Job, now: int) -> Job:
    """Returns the job as the state changes it: its version, and its deadline moved by the stopped time."""
    total = stopped(state, now)
    version = version_of(state, job.version)
    if total == job.stopped and version == job.version:
        return job
    return replace(job, version=version, deadline=job.deadline + total - job.stopped, stopped=total)


def present_evidence(state: ScheduleState, evidence: Evidence, now: int) -> Evidence:
    """Returns evidence as the state changes it, like `rebind_job`."""
    total = stopped(state, now)
    deadline = None if evidence.deadline is None else evidence.deadline + total - evidence.stopped
    version = version_of(state, evidence.version)
    if (deadline, version) == (evidence.deadline, evidence.version):
        return evidence
    return replace(evidence, version=version, deadline=deadline, stopped=total)


SPECS_KEPT = 10_000
"""Parsed definitions per process (about 5 KB each)."""


SPEC_CHARACTERS_KEPT_MAX = 20_000
"""Longer definitions, with the payload of a message, are parsed each time: only requests read them."""


def parsed(text: str) -> ScheduleSpec:
    """Returns the parsed definition of a canonical JSON text."""
    return _kept(text) if len(text) <= SPEC_CHARACTERS_KEPT_MAX else ScheduleSpec.from_canonical(text)


@lru_cache(maxsize=SPECS_KEPT)
def _kept(text: str) -> ScheduleSpec:
    return ScheduleSpec.from_canonical(text)


def spec_of(unit: UnitOfWork, namespace: str, name: str, version: int) -> ScheduleSpec | None:
    """Returns the definition of a schedule version; None when it is gone (a tombstone's)."""
    definition = unit.record(Definition, keys.definition(unit.shard, namespace, name, version))
    return None if definition is None else parsed(definition.spec)
