"""What a schedule's state lets happen, and what it makes of its pending jobs and evidence (SEMANTICS 10, 12).

Nothing of this is written down job by job: a suspend or an update moves one item, and whoever reads a job sees it through
that item. So thousands of jobs are parked, released, or bound to another version by one write.
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
"""Of carried versions, with updates that let the old finish in between: of so many, jobs of the oldest one complete as they
were made."""


def fires(state: ScheduleState) -> bool:
    """Whether its trigger goes on: events count, instants make jobs."""
    return state.status == "active" or parks(state)


def admits(state: ScheduleState) -> bool:
    """Whether what waits may be launched: not before a resume's cut is through, which says what of it goes on."""
    return state.shedding is None and launches(state)


def launches(state: ScheduleState) -> bool:
    """Whether what was admitted may be launched, once more as well: no cut is about that."""
    return state.status == "active" or (state.status == "suspended" and state.mode == "drain")


def parks(state: ScheduleState) -> bool:
    """Whether its trigger goes on making jobs, of which none is launched."""
    return state.status == "suspended" and state.mode == "hold"


def fires_through(state: ScheduleState, now: int) -> int:
    """Returns up to when its trigger's instants are made as the state stands.

    None that a held schedule is not held for any more, however late somebody comes to carry its end out: what is parked waits within the
    bounds of a hold, and what is due from the end on as overlap and `catchup` say.
    """
    return now if state.until is None or not parks(state) else min(now, state.until - 1)


def clocks_stopped(state: ScheduleState) -> bool:
    """Whether the clocks of time-outs stand still."""
    return state.status == "suspended" and state.mode in {"hold", "freeze"}


def keeps_pending(state: ScheduleState) -> bool:
    """Whether what was pending before the last request, and is bound to the present version, is still there."""
    return state.status == "active" or (state.status == "suspended" and state.mode != "drop")


def oldest_kept_generation(state: ScheduleState) -> int:
    """Returns the oldest generation whose pending jobs go on."""
    return state.generation if state.kept_from is None else state.kept_from


def backlog_through(state: ScheduleState) -> int:
    """Returns up to when what waits was satisfied, if it is the backlog of the last resume."""
    return state.changed_at if state.backlog_through is None else state.backlog_through


def awaits_backlog_cut(state: ScheduleState, job: Job) -> bool:
    """Whether a job that waits is of the backlog of which a resume leaves only a part, and has not ended the rest yet."""
    return state.shedding is not None and job.satisfied_at <= backlog_through(state)


def is_cut(state: ScheduleState, job: Job) -> bool:
    """Whether such a job ends, whatever else waits: a resume has left nothing of what waited with it."""
    if not awaits_backlog_cut(state, job):
        return False
    return state.shedding == "none" or (state.cut_through is not None and job.satisfied_at <= state.cut_through)


def stopped(state: ScheduleState, now: int) -> int:
    """Returns for how long, in ms, the clocks of time-outs have stood still until now, all suspensions together."""
    return state.stopped_ms + (goes_on_at(state, now) - state.suspended_at if clocks_stopped(state) else 0)


def goes_on_at(state: ScheduleState, now: int) -> int:
    """Returns up to when the clocks of a suspended schedule have stood still.

    No longer than promised, however late somebody comes to carry the end out: what hears events all along (`hold`) is to make of those
    that came since what it would have made. What ignores them (`freeze`) goes on where it hears again.
    """
    promised = now if state.until is None or not parks(state) else min(now, state.until)
    return max(state.suspended_at, promised)  # By another node's clock it may have been suspended later.


def stopped_by(state: ScheduleState, at: int) -> int:
    """Returns for how long, in ms, the clocks had stood still at an instant that has passed.

    Unlike `stopped` it knows that an event which was appended amid a suspension, or before it, may be counted after it. Of
    suspensions before those that the state names all is taken as past.
    """
    return stopped(state, at) - sum(max(0, end - max(at, begin)) for begin, end in last_stops(state))


def last_stops(state: ScheduleState) -> list[tuple[int, int]]:
    """Returns begin and end of the last suspensions in which the clocks of time-outs stood still, and that are over, in their order."""
    return list(zip(state.last_stops[::2], state.last_stops[1::2], strict=True))


def version_of(state: ScheduleState, version: int) -> int:
    """Returns the version to which what was made under `version` is bound by now."""
    pairs = zip(state.carried[::2], state.carried[1::2], strict=True)
    return next((last for first, last in pairs if first <= version <= last), version)


def carried_on(state: ScheduleState) -> tuple[int, ...]:
    """Returns the stretches of carried versions once the present one is carried on to the next."""
    following = state.version + 1
    if state.carried and state.carried[-1] == state.version:
        return (*state.carried[:-1], following)
    return (*state.carried, state.version, following)[-2 * STRETCHES_MAX :]


def is_of_ended_generation(state: ScheduleState, evidence: Evidence) -> bool:
    """Whether evidence ends because of a request that the state has in it already: pages may still be to come that end it."""
    if version_of(state, evidence.version) != state.version:
        return True
    return evidence.generation is not None and evidence.generation < oldest_kept_generation(state)


def rebind_job(state: ScheduleState, job: Job, now: int) -> Job:
    """Returns the job as the state makes it: its version, and its deadline moved by how long the clocks stood still."""
    total = stopped(state, now)
    version = version_of(state, job.version)
    if total == job.stopped and version == job.version:
        return job
    return replace(job, version=version, deadline=job.deadline + total - job.stopped, stopped=total)


def present_evidence(state: ScheduleState, evidence: Evidence, now: int) -> Evidence:
    """The same for evidence."""
    total = stopped(state, now)
    deadline = None if evidence.deadline is None else evidence.deadline + total - evidence.stopped
    version = version_of(state, evidence.version)
    if (deadline, version) == (evidence.deadline, evidence.version):
        return evidence
    return replace(evidence, version=version, deadline=deadline, stopped=total)


SPECS_KEPT = 10_000
"""Parsed specs per process (about 5 KB each)."""


SPEC_CHARACTERS_KEPT_MAX = 20_000
"""Longer ones, with the payload of a message in them, are parsed again each time: requests alone ask for them."""


def parsed(text: str) -> ScheduleSpec:
    """Returns the spec of a stored definition's canonical JSON."""
    return _kept(text) if len(text) <= SPEC_CHARACTERS_KEPT_MAX else ScheduleSpec.from_canonical(text)


@lru_cache(maxsize=SPECS_KEPT)
def _kept(text: str) -> ScheduleSpec:
    return ScheduleSpec.from_canonical(text)


def spec_of(unit: UnitOfWork, namespace: str, name: str, version: int) -> ScheduleSpec | None:
    """Returns the spec of a schedule version, or None when its definition is gone (a tombstone's)."""
    definition = unit.record(Definition, keys.definition(unit.shard, namespace, name, version))
    return None if definition is None else parsed(definition.spec)
