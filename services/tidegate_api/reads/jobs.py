"""Reads open jobs: jobs that gather evidence (`pending_trigger`), then jobs that wait or launch, with the reasons.

A job's row stays `pending_launch` until its run has ended; the row of the run has the progress of the launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tidegate_api.cluster_map import MapReader
from tidegate_api.http.page_tokens import Place
from tidegate_api.http.problem_responses import not_found
from tidegate_api.reads.range_scan import RangeReader, Span
from tidegate_api.reads.schedules import DEFINITIONS_AT_ONCE, ScheduleReads, prefix_of
from tidegate_api.reads.view_builders import gathering_view, job_view
from tidegate_api.reads.waiting_reasons import unmet_of
from tidegate_api.requests.shard_routing import run_shard
from tidegate_api.thread_pools import Pools
from tidegate_client.views import JobView, Page
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.states import JobState
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import Definition
from tidegate_core.rows.store_operations import Item, Key
from tidegate_ports.clock import Clock
from tidegate_ports.store import Store

ShownState: TypeAlias = Literal["pending_trigger", "pending_constraint", "pending_launch", "launched"]
"""States of an open job in views; it is `launched` until its run has ended."""


@dataclass(frozen=True, slots=True)
class WantedJobs:
    """Filters of a list of jobs.

    Attributes:
        states: States in views; empty means any.
        since: Earliest nominal time; a job that gathers evidence counts by its first event.
        until: Time before which the nominal time must be.
    """

    namespace: str | None = None
    schedule: str | None = None
    states: frozenset[ShownState] = frozenset()
    since: int | None = None
    until: int | None = None

    def may_have(self, item: Item) -> bool:
        """Whether a row of evidence or of a job may pass the filters."""
        if self.namespace not in (None, item["namespace"]) or self.schedule not in (None, item["name"]):
            return False
        at = item["first_at" if _is_evidence(item) else "nominal"]
        assert isinstance(at, int)
        if (self.since is not None and at < self.since) or (self.until is not None and at >= self.until):
            return False
        if not self.states:
            return True
        if _is_evidence(item):
            return "pending_trigger" in self.states
        if item["state"] == JobState.PENDING_LAUNCH:
            return bool(self.states & {"pending_launch", "launched"})
        return item["state"] in self.states


class JobReads:
    """Reads open jobs."""

    def __init__(
        self,
        store: Store,
        pools: Pools,
        cluster: MapReader,
        ranges: RangeReader,
        schedules: ScheduleReads,
        clock: Clock,
    ) -> None:
        self._store = store
        self._pools = pools
        self._cluster = cluster
        self._ranges = ranges
        self._schedules = schedules
        self._clock = clock

    async def page(self, wanted: WantedJobs, place: Place, size: int) -> Page[JobView]:
        """Returns jobs that gather evidence first, then the others; each part is ordered by shard and id."""
        namespace, schedule = wanted.namespace, wanted.schedule
        cluster = await self._cluster.current()
        shards: Sequence[int] = range(cluster.shards)
        prefix = prefix_of(namespace, None if namespace is None else schedule)
        if namespace is not None and schedule is not None:
            shards = [schedule_shard(namespace, schedule, cluster.shards)]
            prefix += "#"

        def keep(item: Item) -> bool:
            if _is_evidence(item) and item.get("job", False):
                return False  # Its job has its own row.
            return wanted.may_have(item)

        spans = [Span.of_prefix(f"{keys.EVIDENCE_PREFIX}{prefix}"), Span.of_prefix(keys.JOB_PREFIX)]
        found, after = await self._ranges.listed(shards, spans, place, size, keep)
        views: list[JobView] = []
        for first in range(0, len(found), DEFINITIONS_AT_ONCE):
            views += await self._views(found[first : first + DEFINITIONS_AT_ONCE])
        if wanted.states:
            # The state of an admitted job is only known from its run, so the filter is applied again.
            views = [view for view in views if view.state in wanted.states]
        return Page(items=views, next_page_token="" if after is None else after.text())

    async def one(self, job_id: str) -> JobView:
        """Returns an open job. Raises ApiProblem (404), InvalidInput (no such shard)."""
        shard = run_shard(job_id, (await self._cluster.current()).shards, "job_id")
        key = keys.job(shard, job_id)
        item = (await self._pools.read(lambda: self._store.get([key]))).get(key)
        found: Sequence[tuple[int, Item]] = [(shard, item)] if item is not None else []
        if not found:
            found = await self._ranges.all_of(
                [shard],
                Span.of_prefix(keys.EVIDENCE_PREFIX),
                1,
                lambda row: row.get("id") == job_id and not row.get("job", False),
            )
        views = await self._views(found)
        if not views:
            raise not_found(f"job {job_id}: is not open; it may have become the run with the same id")
        return views[0]

    async def _views(self, found: Sequence[tuple[int, Item]]) -> list[JobView]:
        gathering = [(shard, from_item(Evidence, item)) for shard, item in found if _is_evidence(item)]
        definitions = await self._schedules.definitions(
            {(shard, each.namespace, each.name, each.version) for shard, each in gathering}
        )
        runs = await self._runs((shard, str(item["id"])) for shard, item in found if _is_admitted(item))
        cluster, now = await self._cluster.current(), self._clock.now_ms()
        waiting = await self._pools.read(lambda: unmet_of(self._store, cluster, found, now))
        # On a thread: parsing definitions would delay starts of programs.
        return await self._pools.read(lambda: _views_of(found, definitions, runs, waiting))

    async def _runs(self, wanted: Iterable[tuple[int, str]]) -> dict[str, Run]:
        """Returns the open runs of admitted jobs, by id."""
        keys_wanted = [keys.run(shard, job_id) for shard, job_id in wanted]
        if not keys_wanted:
            return {}
        found = await self._pools.read(lambda: self._store.get(keys_wanted))
        return {run.id: run for run in (from_item(Run, item) for item in found.values())}


def _views_of(
    found: Sequence[tuple[int, Item]],
    definitions: Mapping[Key, Definition],
    runs: Mapping[str, Run],
    waiting: Mapping[str, str],
) -> list[JobView]:
    views = []
    for shard, item in found:
        if _is_evidence(item):
            each = from_item(Evidence, item)
            definition = definitions.get(keys.definition(shard, each.namespace, each.name, each.version))
            views.append(gathering_view(each, definition))
        elif not _is_admitted(item):
            views.append(job_view(from_item(Job, item), unmet=waiting.get(str(item["id"]))))
        elif (run := runs.get(str(item["id"]))) is not None:
            views.append(job_view(from_item(Job, item), run))
        # Without a run, the run has ended since the job was read: one write removes both rows.
    return views


def _is_admitted(item: Item) -> bool:
    return not _is_evidence(item) and item["state"] == JobState.PENDING_LAUNCH


def _is_evidence(item: Item) -> bool:
    return str(item["sk"]).startswith(keys.EVIDENCE_PREFIX)
