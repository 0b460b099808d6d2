"""Reads limits in use. They are found by the runs that hold permits and the jobs that wait, because an unused limit has no item.

The reads are no snapshot. Before a permit is called stuck, the limit is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from tidegate_api.cluster_map import MapReader
from tidegate_api.http.problem_responses import not_found
from tidegate_api.reads.range_scan import RangeReader, Span, outline
from tidegate_api.thread_pools import Pools
from tidegate_client.views import HolderView, LimitDetail, LimitSummary, WaiterView
from tidegate_core.language.values.derived_ids import shard_of_run
from tidegate_core.language.values.instants import as_datetime
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.rows.shared_limit import QueueEntry, SharedLimit
from tidegate_core.rows.store_operations import Item, Key, RangeRead
from tidegate_core.writes.limit_permits import key_of
from tidegate_ports.clock import Clock
from tidegate_ports.store import Store

ROWS_MAX: Final = 20_000
"""Most open runs, and most queue entries, that are read; further ones are not shown."""
SCHEDULES_SHOWN: Final = 5
OUTLINE: Final = outline("sk", "id", "namespace", "name", "state", "admitted_at", "limits")
"""Fields of a run that are read; see `reads.runs`."""


class _Run(NamedTuple):
    """A run that holds permits."""

    id: str
    ref: str
    state: str
    admitted_at: int

    @classmethod
    def of(cls, item: Item) -> Self:
        admitted_at = item["admitted_at"]
        assert isinstance(admitted_at, int)
        ref = keys.schedule_ref(str(item["namespace"]), str(item["name"]))
        return cls(str(item["id"]), ref, str(item["state"]), admitted_at)


@dataclass(slots=True)
class _Found:
    """A limit that is in use.

    Attributes:
        key: Key of its item.
        runs: Open runs whose rows name a permit of it.
        waiters: Queue entries in their order.
        waiting: Schedules of the first waiting jobs, if no run tells the schedule.
        holders: Ids of runs that the limit's own rows name as holders.
    """

    key: Key
    runs: dict[str, _Run] = field(default_factory=dict)
    waiters: list[QueueEntry] = field(default_factory=list)
    waiting: frozenset[str] = frozenset()
    state: SharedLimit = field(default_factory=SharedLimit)
    holders: frozenset[str] = frozenset()
    stuck: tuple[str, ...] = ()


class LimitReads:
    """Reads limits in use."""

    def __init__(self, store: Store, pools: Pools, cluster: MapReader, ranges: RangeReader, clock: Clock) -> None:
        self._store = store
        self._pools = pools
        self._cluster = cluster
        self._ranges = ranges
        self._clock = clock

    async def all(self, namespace: str | None) -> list[LimitSummary]:
        """Returns the limits with permits in use or waiting jobs: first those with stuck permits, then by the number of waiting jobs."""
        found = await self._used(namespace)
        views = [self._summary(each) for each in found]
        return sorted(views, key=lambda view: (not view.stuck, -view.waiting, view.id))

    async def one(self, namespace: str, scope: str, name: str, most: int) -> LimitDetail:
        """Returns a limit with at most `most` holders and `most` waiting jobs. Raises ApiProblem (404)."""
        wanted = f"{namespace}/{scope}/{name}"
        found = next((each for each in await self._used(namespace) if _id(each.key) == wanted), None)
        if found is None:
            raise not_found(f"limit {wanted}: is not in use; tidegate limits list shows the limits in use")
        holders = _holders(found)
        wanted_jobs = [waiter.job_id for waiter in found.waiters[:most]]
        jobs = await self._pools.read(lambda: self._jobs(wanted_jobs))
        return LimitDetail.model_validate(
            {
                **self._summary(found).model_dump(),
                "holders": holders[:most],
                "holders_left_out": max(0, len(holders) - most),
                "waiters": [_waiter(each, jobs.get(each.job_id), found.state) for each in found.waiters[:most]],
                "waiters_left_out": max(0, len(found.waiters) - most),
            }
        )

    # -- reading ----------------------------------------------------------------------------------------------------------

    async def _used(self, namespace: str | None) -> list[_Found]:
        shards = range((await self._cluster.current()).shards)
        found: dict[Key, _Found] = {}
        for _, item in await self._ranges.all_of(shards, Span.of_prefix(keys.QUEUE_ENTRY_PREFIX), ROWS_MAX):
            waiter = from_item(QueueEntry, item)
            _of(found, keys.limit_of(waiter.limit)).waiters.append(waiter)
        for _, item in await self._ranges.all_of(
            shards, Span.of_prefix(keys.RUN_PREFIX), ROWS_MAX, lambda row: "limits" in row, OUTLINE
        ):
            run, held = _Run.of(item), item["limits"]
            assert isinstance(held, list)
            for text in held:
                key = key_of(str(text))
                _of(found, keys.limit_of(key.pk) if key.pk.startswith(keys.SHARED_LIMIT) else key).runs[run.id] = run
        for _, item in await self._ranges.all_of(
            shards, Span.of_prefix(keys.OWN_LIMIT_PREFIX), ROWS_MAX, keep=lambda row: "holders" in row
        ):
            _of(found, Key(str(item["pk"]), str(item["sk"])))
        kept = [each for each in found.values() if namespace in (None, _id(each.key).split("/")[0])]
        await self._pools.read(lambda: self._read(kept))
        return [each for each in kept if each.waiters or each.holders or each.state.in_use]

    def _read(self, found: Sequence[_Found]) -> None:
        """Reads the rows of the limits, and finds holders whose runs do not exist. Blocking."""
        items = self._store.get([each.key for each in found])
        for each in found:
            self._take_in(each, items.get(each.key))
            gone = self._gone(each, each.holders - each.runs.keys())
            if gone:
                # Read again: a run that ended since the first read returned its permit in the transaction that removed its row.
                self._take_in(each, self._store.get([each.key]).get(each.key))
            each.stuck = tuple(sorted(gone & each.holders))
        self._name(found)

    def _name(self, found: Sequence[_Found]) -> None:
        """Finds the schedules of limits without runs by their waiting jobs, because names of limits are hashes. Blocking."""
        first = {
            each.key: [waiter.job_id for waiter in each.waiters[:SCHEDULES_SHOWN]] for each in found if not each.runs
        }
        jobs = self._jobs([job_id for job_ids in first.values() for job_id in job_ids])
        for each in found:
            each.waiting = frozenset(jobs[job_id].ref for job_id in first.get(each.key, ()) if job_id in jobs)

    def _take_in(self, found: _Found, item: Item | None) -> None:
        if found.key.pk.startswith(keys.SHARED_LIMIT):
            found.state = SharedLimit.of(item).at(self._clock.now_ms())
            low, high = keys.permit(found.key, "").sk, keys.permit(found.key, keys.LAST).sk
            own_items = () if keys.is_rate(found.key) else self._store.query(RangeRead(found.key.pk, low, high)).items
            found.holders = found.state.holders | {str(row["run_id"]) for row in own_items}
        else:
            found.holders = frozenset() if item is None else frozenset(from_item(OwnLimit, item).holders)
            found.state = SharedLimit(in_use=len(found.holders))

    def _gone(self, found: _Found, unknown: Iterable[str]) -> frozenset[str]:
        wanted = {keys.run(shard_of_run(run_id), run_id): run_id for run_id in sorted(unknown)}
        items = self._store.get(list(wanted)) if wanted else {}
        found.runs |= {wanted[key]: _Run.of(item) for key, item in items.items()}
        return frozenset(run_id for key, run_id in wanted.items() if key not in items)

    def _jobs(self, job_ids: Sequence[str]) -> Mapping[str, Job]:
        """Returns open jobs by id. Blocking."""
        wanted = [keys.job(shard_of_run(job_id), job_id) for job_id in job_ids]
        items = self._store.get(wanted) if wanted else {}
        return {job.id: job for job in (from_item(Job, item) for item in items.values())}

    # -- views ------------------------------------------------------------------------------------------------------------

    def _summary(self, found: _Found) -> LimitSummary:
        rate = keys.is_rate(found.key)
        namespace, scope, _ = _id(found.key).split("/", 2)
        held = [run.admitted_at for run in found.runs.values() if run.id in found.holders]
        return LimitSummary.model_validate(
            {
                "id": _id(found.key),
                "namespace": namespace,
                "scope": scope.removeprefix(keys.RATE),
                "kind": "rate" if rate else "concurrency",
                "schedules": sorted({run.ref for run in found.runs.values()} or found.waiting)[:SCHEDULES_SHOWN],
                "in_use": found.state.in_use,
                "most": found.waiters[0].most if found.waiters else None,
                "waiting": len(found.waiters),
                "held_since": _moment(min(held, default=None)),
                "waiting_since": _moment(min((each.satisfied_at for each in found.waiters), default=None)),
                "next_change": _moment(min(found.state.counts, default=None)),
                "stuck": list(found.stuck),
            }
        )


def _of(found: dict[Key, _Found], key: Key) -> _Found:
    return found.setdefault(key, _Found(key))


def _id(key: Key) -> str:
    """Returns `<namespace>/<scope>/<name>`: from the key of a shared limit, or with the schedule's name for its own limit."""
    if key.pk.startswith(keys.SHARED_LIMIT):
        _, namespace, scope, name = key.pk.split("#", 3)
        return f"{namespace}/{scope}/{name}"
    namespace, name = key.sk.removeprefix(keys.OWN_LIMIT_PREFIX).split("/", 1)
    return f"{namespace}/schedule/{name}"


def _holders(found: _Found) -> list[HolderView]:
    """Returns stuck holders first, then the longest holders. A rate limit has no holders, only counts."""
    there = sorted((run for run in found.runs.values() if run.id in found.holders), key=lambda run: run.admitted_at)
    views = [HolderView(run=run_id, stuck=True) for run_id in found.stuck]
    return views + [
        HolderView(run=run.id, schedule=run.ref, state=run.state, since=as_datetime(run.admitted_at)) for run in there
    ]


def _waiter(row: QueueEntry, job: Job | None, state: SharedLimit) -> WaiterView:
    return WaiterView(
        job=row.job_id,
        schedule=None if job is None else job.ref,
        since=as_datetime(row.satisfied_at),
        offered=row.job_id in state.offered,
        aside=bool(row.aside),
    )


def _moment(instant: int | None) -> Any:
    return None if instant is None else as_datetime(instant)
