"""Runs: open ones from the shards, ended ones from the history, newest first."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from heapq import nlargest

from tidegate_api.cluster_map import ClusterMap, MapReader
from tidegate_api.pools import Pools
from tidegate_api.problems import ApiProblem, not_found
from tidegate_api.reads.convert import as_concluded, run_of_ledger, run_view
from tidegate_api.reads.ranges import RangeReader, Span, outline
from tidegate_api.reads.schedules import prefix_of
from tidegate_api.routing import run_shard
from tidegate_client.views import RunView
from tidegate_core.model.shards import schedule_shard
from tidegate_core.model.states import RunState
from tidegate_core.records.codec import from_item
from tidegate_core.records.run_plane import LedgerRow, Run
from tidegate_core.store import keys
from tidegate_core.store.values import Item, Key
from tidegate_ports.store import Store

RUNS_MAX = 1_000
"""Newest runs of one answer; all of them, in pages, are in the ledger (`/occurrences`)."""
OPEN_MAX = 10_000
"""Open runs of one answer, before the newest are chosen."""
OUTLINE = outline("sk", "id", "admitted_at", "nominal")
"""What tells the newest: 80,000 that 16 shards give at once take 50 MB so, and 400 MB with all that their runs have."""
OF_OPEN_RUNS = frozenset({RunState.SUBMITTING, RunState.SUBMITTED, RunState.RUNNING, RunState.LOST})
"""States in which no run ends, so that no ledger has them."""
SCHEDULES_MAX = 500
"""Schedules whose ledgers are looked at for one answer."""
LEDGER_ROWS_MIN = 50
"""Rows of one schedule's ledger from which the newest are chosen, however few are asked for: it is sorted by nominal, and what was made up for
was admitted behind what has a later one. A page of the store has as many anyhow."""
LEDGER_ROWS_MAX = 5_000
"""Rows of one schedule's ledger looked at for a state that is rare."""
LEDGERS_AT_ONCE = 16
"""Read together, as many as there are threads for reads, before the newest of them are chosen. A row takes 2.7 KB here: of 500 schedules with
1,000 rows each all of them are 1.3 GB, and the chart gives a pod 512 MB."""
SHOWN_AT_ONCE = 50
"""Runs that are read and made ready together: 20 MB where each has the 400 KB that an item may have."""
SHOWN_CHARACTERS_MAX = 20 * 1_048_576
"""Of the texts of an answer's runs: as many as are shown by default may have that. It takes eight times as much while it is written, and a thousand
runs with all the outputs that one may report would be the end of a pod of 512 MB, start gate and all."""


class RunReads:
    """Reads of runs."""

    def __init__(self, store: Store, pools: Pools, cluster: MapReader, ranges: RangeReader) -> None:
        self._store = store
        self._pools = pools
        self._cluster = cluster
        self._ranges = ranges

    async def one(self, run_id: str) -> RunView:
        """Raises ApiProblem (404), InvalidInput (no such shard)."""
        shard = run_shard(run_id, (await self._cluster.current()).shards)
        # One after the other, as a run moves: a batch is no snapshot, and may miss one that ends in between in both.
        for key in (keys.run(shard, run_id), keys.ended_run(shard, run_id)):
            if (item := await self._pools.read(partial(self._one, key))) is not None:
                return run_view(from_item(Run, item))
        raise not_found(f"run {run_id}: there is none; ended runs are kept 30 days, and a job that waits is no run yet")

    def _one(self, key: Key) -> Item | None:
        return self._store.get([key]).get(key)

    async def newest(self, namespace: str | None, schedule: str | None, state: str | None, limit: int) -> list[RunView]:
        """Returns the newest runs by admission.

        Of each schedule the newest by nominal are looked at, as many as are asked for and at least `LEDGER_ROWS_MIN`: an ended run that
        was admitted so late (made up for, say) that more than these have a later nominal is not among them.
        """
        cluster = await self._cluster.current()
        # One after the other, as a run moves: read at the same time, one that ends in between may be missed in both. So it is in both
        # at most.
        of_open = await self._open(cluster, namespace, schedule, state)
        rows = [] if state in OF_OPEN_RUNS else await self._ledger(cluster, namespace, schedule, state, limit)
        # On a thread: of 60 schedules with 500 ended runs each it took 3 s, in which no program could start.
        return await self._pools.read(lambda: self._views(newest_of(of_open, rows, limit), state))

    async def _open(
        self, cluster: ClusterMap, namespace: str | None, schedule: str | None, state: str | None
    ) -> list[Item]:
        shards = _shards(cluster, namespace, schedule)

        def keep(item: Item) -> bool:
            return namespace in (None, item["namespace"]) and schedule in (None, item["name"]) and _is_in(state, item)

        found = await self._ranges.all_of(shards, Span.of_prefix("R#"), OPEN_MAX, keep, OUTLINE)
        return [item for _, item in found]

    async def _ledger(
        self, cluster: ClusterMap, namespace: str | None, schedule: str | None, state: str | None, limit: int
    ) -> list[Item]:
        """The newest rows of all, out of the newest of each schedule: the ledger is sorted by nominal within a schedule only."""
        chosen = await self._schedules(cluster, namespace, schedule)
        rows = max(limit, LEDGER_ROWS_MIN)

        def keep(item: Item) -> bool:
            # Without a state there was no run; every run has one.
            return item.get("state") is not None and state in (None, item["state"])

        spans = [(shard, Span.of_prefix(f"L#{ref}#", "history")) for shard, ref in chosen]

        async def newest_with(before: list[Item], some: Sequence[tuple[int, Span]]) -> list[Item]:
            pages = await asyncio.gather(
                *(self._ranges.newest(shard, span, rows, keep, LEDGER_ROWS_MAX) for shard, span in some)
            )
            return await self._pools.read(partial(newest_rows, [before, *pages], limit))

        newest: list[Item] = []
        for first in range(0, len(spans), LEDGERS_AT_ONCE):
            newest = await newest_with(newest, spans[first : first + LEDGERS_AT_ONCE])
        return newest

    async def _schedules(
        self, cluster: ClusterMap, namespace: str | None, schedule: str | None
    ) -> list[tuple[int, str]]:
        if namespace is not None and schedule is not None:
            return [(schedule_shard(namespace, schedule, cluster.shards), f"{namespace}/{schedule}")]
        span = Span.of_prefix(f"S#{prefix_of(namespace)}")
        found = await self._ranges.all_of(
            range(cluster.shards), span, SCHEDULES_MAX + 1, lambda item: schedule in (None, item["name"])
        )
        if len(found) > SCHEDULES_MAX:
            states = ", ".join(sorted(OF_OPEN_RUNS))
            detail = f"more than {SCHEDULES_MAX} schedules have runs; name a namespace, a schedule, or a state of open runs ({states})"
            raise ApiProblem(400, detail)
        return [(shard, str(item["sk"]).removeprefix("S#")) for shard, item in found]

    def _views(self, chosen: Mapping[str, Item | None], state: str | None) -> list[RunView]:
        """Runs with all that is kept of them, an ended one's for 30 days; older ones as the ledger has them. Blocking.

        Args:
            chosen: Rows of the ledger, by the runs' ids; None of an open one.
            state: What an open one has to be in still.

        Raises:
            ApiProblem: They have too much together (400).
        """
        views: list[RunView] = []
        ids, left = list(chosen), SHOWN_CHARACTERS_MAX
        for first in range(0, len(ids), SHOWN_AT_ONCE):
            some = {each: chosen[each] for each in ids[first : first + SHOWN_AT_ONCE]}
            runs = self._runs(some)
            left -= sum(map(_characters_of, runs.values()))
            if left < 0:
                detail = f"the newest {len(ids)} runs have more than {SHOWN_CHARACTERS_MAX} characters of outputs and orders together"
                raise ApiProblem(400, f"{detail}; ask for fewer (limit)")
            views += _views_of(some, runs)
        return [view for view in views if chosen[view.id] is not None or state in (None, view.state)]

    def _runs(self, chosen: Mapping[str, Item | None]) -> dict[str, Run]:
        """Returns those of which more is left than the ledger's row."""
        still_open = self._found({keys.run(keys.shard_of_run(each), each): each for each in chosen if not chosen[each]})
        # Behind it, as a run moves.
        ended = self._found(
            {keys.ended_run(keys.shard_of_run(each), each): each for each in chosen if each not in still_open}
        )
        return ended | still_open

    def _found(self, wanted: Mapping[Key, str]) -> dict[str, Run]:
        items = self._store.get(list(wanted)) if wanted else {}
        return {wanted[key]: from_item(Run, item) for key, item in items.items()}


def _views_of(chosen: Mapping[str, Item | None], runs: Mapping[str, Run]) -> list[RunView]:
    views: list[RunView] = []
    for run_id, row in chosen.items():
        run = runs.get(run_id)
        if run is not None:
            views.append(run_view(run))
        elif row is not None:
            views.append(run_of_ledger(from_item(LedgerRow, row)))
    return views


def _characters_of(run: Run) -> int:
    return sum(len(text) for text in (run.order, run.outputs, run.failure) if text is not None)


def newest_rows(pages: Sequence[Sequence[Item]], limit: int) -> list[Item]:
    """Returns the rows of the `limit` newest runs by admission, each run once."""
    rows = {str(row["job_id"]): row for page in pages for row in page}
    return [rows[run_id] for _, run_id in nlargest(limit, _by_admission(rows))]


def newest_of(of_open: Sequence[Item], rows: Sequence[Item], limit: int) -> dict[str, Item | None]:
    """Returns the newest runs by admission, of outlines of open ones and of the ledger's rows: of each its row, None of an open one."""
    ended = {str(row["job_id"]): row for row in rows}
    # A run that ended in between is in both lists, and its end is newer.
    still_open = {str(item["id"]): item for item in of_open if item["id"] not in ended}
    chosen = nlargest(limit, [*_by_admission(still_open), *_by_admission(ended)])
    return {run_id: ended.get(run_id) for _, run_id in chosen}


def _by_admission(items: Mapping[str, Item]) -> Iterator[tuple[int, str]]:
    """Yields what the runs are sorted by: ids as well, so that the order is always the same."""
    for run_id, item in items.items():
        instant = item.get("admitted_at") or item["nominal"]
        assert isinstance(instant, int)
        yield instant, run_id


def _is_in(state: str | None, item: Item) -> bool:
    return state is None or as_concluded(from_item(Run, item)).state == state


def _shards(cluster: ClusterMap, namespace: str | None, schedule: str | None) -> Sequence[int]:
    if namespace is not None and schedule is not None:
        return [schedule_shard(namespace, schedule, cluster.shards)]
    return range(cluster.shards)
