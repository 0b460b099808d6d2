"""Reads the blockers of the waiting jobs of a page: some rows of their schedules, and one page of open jobs for each shard."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tidegate_api.cluster_map import ClusterMap
from tidegate_api.reads.why_snapshot import last_sign_of
from tidegate_core.explain.why.admission_dry_run import in_line
from tidegate_core.explain.why.job_reasons import waits_for
from tidegate_core.explain.why.schedule_snapshot import Facts
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.states import JobState
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, StoredSuspensions
from tidegate_core.rows.store_operations import Item, RangeRead
from tidegate_core.shard.schedule_state import version_of
from tidegate_ports.store import Store

JOBS_OF_SHARD_MAX: Final = 1_000
"""Open jobs of a shard among which the jobs before a job are counted; if there are more, the text says `at least`."""


def unmet_of(store: Store, cluster: ClusterMap, found: Sequence[tuple[int, Item]], now: Instant) -> Mapping[str, str]:
    """Returns the blockers of each job, in the form of `Job.unmet`, by id. It blocks for its reads.

    Args:
        store: Store of the jobs.
        cluster: Partition map that this process knows.
        found: Items of jobs with their shards; jobs that do not wait for constraints are ignored.
        now: Present time.
    """
    waiting = [
        (shard, from_item(Job, item)) for shard, item in found if item.get("state") == JobState.PENDING_CONSTRAINT
    ]
    if not waiting:
        return {}
    leases = {shard: keys.lease(shard) for shard, _ in waiting}
    states = {(shard, job.ref): keys.schedule_state(shard, job.namespace, job.name) for shard, job in waiting}
    rows = store.get([*dict.fromkeys([*states.values(), *leases.values(), keys.SUSPENSIONS_KEY])])
    controls = rows.get(keys.SUSPENSIONS_KEY)
    signs = {shard: last_sign_of(store, rows.get(key), cluster, shard) for shard, key in leases.items()}
    jobs = _jobs(store, {shard for shard, job in waiting if job.unmet is None})
    blockers: dict[str, str] = {}
    for (shard, ref), of_schedule in _by_schedule(waiting).items():
        state = rows.get(states[shard, ref])
        if state is None:
            continue
        read, has_all = jobs.get(shard, ({}, True))
        facts = Facts(
            shard=shard,
            shards=cluster.shards,
            now=now,
            state=from_item(ScheduleState, state),
            definitions=(),
            controls=NO_SUSPENSIONS if controls is None else from_item(StoredSuspensions, controls).controls,
            last_sign=signs[shard],
            # Includes the jobs of the page, because the shard may have more open jobs than were read.
            jobs=tuple({job.id: job for job in (*read.get(ref, ()), *of_schedule)}.values()),
        )
        line = in_line(_with_definitions(store, facts))
        blockers |= {job.id: waits_for(facts, job, line, has_all=has_all) for job in of_schedule}
    return blockers


def _by_schedule(waiting: Sequence[tuple[int, Job]]) -> Mapping[tuple[int, str], Sequence[Job]]:
    found: defaultdict[tuple[int, str], list[Job]] = defaultdict(list)
    for shard, job in waiting:
        found[shard, job.ref].append(job)
    return found


def _with_definitions(store: Store, facts: Facts) -> Facts:
    """Returns the facts with definitions if the jobs have several versions, because priorities of the definitions order the jobs."""
    versions = {version_of(facts.state, job.version) for job in facts.jobs}
    if len(versions) == 1:
        return facts
    wanted = [keys.definition(facts.shard, facts.state.namespace, facts.state.name, each) for each in sorted(versions)]
    return replace(facts, definitions=tuple(from_item(Definition, row) for row in store.get(wanted).values()))


def _jobs(store: Store, shards: set[int]) -> dict[int, tuple[Mapping[str, Sequence[Job]], bool]]:
    """Returns one page of open jobs of each shard, by schedule, and whether it has all of them."""
    found: dict[int, tuple[Mapping[str, Sequence[Job]], bool]] = {}
    for shard in sorted(shards):
        wanted = RangeRead(keys.shard_pk(shard), keys.JOB_PREFIX, keys.JOB_PREFIX + keys.LAST, limit=JOBS_OF_SHARD_MAX)
        page = store.query(wanted)
        by_schedule: defaultdict[str, list[Job]] = defaultdict(list)
        for row in page.items:
            job = from_item(Job, row)
            by_schedule[job.ref].append(job)
        found[shard] = by_schedule, page.next_after is None
    return found
