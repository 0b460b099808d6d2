"""The order of a schedule's waiting jobs, and the earliest start of a job with a flexible window.

A job of a lower class never precedes a job of a higher class. A schedule has jobs of several classes in two cases. A
catch-up job has class `low` at most. After an update with `finish_old`, jobs of a former version keep that version's
priority. A job has the class of the version to which the schedule's state binds it, so no job stores a class: an
update that keeps thousands of jobs writes one item.

The flexible window spreads schedules with the same instant evenly. The offset is a hash of schedule and nominal time,
so every caller gets the same one at any time. Nominal time and data interval do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tidegate_core.language.constraints.constraint import Hold
from tidegate_core.language.definitions.run_policies import Priority, class_of, rank_of
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.derived_ids import hash_of
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.rows.job import Job

Place: TypeAlias = tuple[bool, bool, int, int, str]


def queue_position(job: Job) -> Place:
    """Returns a job's position among the jobs of its version; the last part is its id.

    On-time jobs pass catch-up jobs, also in a schedule of class `low`. Jobs with `force_overlap` precede others
    because they wait for fewer conditions.
    """
    return (bool(job.catch_up), not job.force_overlap, job.waits_since, job.nominal, job.id)


def by_class(jobs: Sequence[Job], priority_of: Callable[[int], Priority]) -> list[Job]:
    """Returns jobs of several versions, highest class first.

    Args:
        jobs: Jobs in the order of `queue_position`, which they keep within a class.
        priority_of: Returns the priority of a version.
    """
    priorities = {version: priority_of(version) for version in sorted({job.version for job in jobs})}
    ranks = {
        (version, catch_up): rank_of(class_of(priority, catch_up=catch_up))
        for version, priority in priorities.items()
        for catch_up in (False, True)
    }
    return sorted(jobs, key=lambda job: ranks[job.version, bool(job.catch_up)])


def flexible_until(trigger: TimeTrigger, identity: str, nominal: Instant) -> Instant:
    """Returns the earliest start of an occurrence: its nominal time, or an instant in the window after it."""
    if trigger.flexible is None:
        return nominal
    number = int.from_bytes(hash_of("flexible", identity, str(nominal))[:8], "big")
    return nominal + number % trigger.flexible


def flexible_hold(spec: ScheduleSpec, job: Job, now: Instant) -> Hold | None:
    """Returns the hold of an occurrence until its instant in the flexible window, or None."""
    if job.trigger != "time" or not isinstance(spec.trigger, TimeTrigger):
        return None
    until = flexible_until(spec.trigger, job.ref, job.nominal)
    if now >= until:
        return None
    return Hold(until, "flexible_window", f"its place in the flexible window is {format_instant(until)}")
