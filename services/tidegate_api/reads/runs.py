"""Reads runs: open runs from the shards, newest admission first; then ended runs from the history, newest end first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from typing import Final

from tidegate_api.cluster_map import ClusterMap, MapReader
from tidegate_api.http.page_tokens import Place
from tidegate_api.http.problem_responses import ApiProblem, not_found
from tidegate_api.reads.history_keys import ended_run
from tidegate_api.reads.newest_first import NewestReader, SortedRange
from tidegate_api.reads.range_scan import PAGES_MAX, RangeReader, Span, outline
from tidegate_api.reads.view_builders import as_concluded, run_view
from tidegate_api.requests.shard_routing import run_shard
from tidegate_api.thread_pools import Pools
from tidegate_client.views import Page, RunView
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.names import RUN_ID_PATTERN
from tidegate_core.language.values.problems import InvalidInput, Problem
from tidegate_core.language.values.states import RunState
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.run import Run
from tidegate_core.rows.store_operations import Item, Key
from tidegate_ports.store import Store

OPEN, ENDED = 0, 1
"""Numbers of the parts of the list, in page tokens."""
OUTLINE = outline("sk", "id", "admitted_at")
"""Fields of an open run that are kept during the search for the newest. 16 shards may return 80,000 at once: 50 MB as outlines, 400 MB
as whole runs."""
OPEN_AT_ONCE = 10_000
"""Outlines of open runs in memory at once: 6 MB."""
OUTLINE_OF_END = outline("sk", "id", "namespace", "name", "state")
OF_OPEN_RUNS: Final = frozenset({RunState.SUBMITTING, RunState.SUBMITTED, RunState.RUNNING, RunState.LOST})
"""States of open runs; the history has no runs in them."""
SHOWN_AT_ONCE = 50
"""Runs that are read together: 20 MB if each has the 400 KB that an item may have."""
SHOWN_CHARACTERS_MAX = 20 * 1_048_576
"""Characters of the texts of a page's runs; the first `SHOWN_AT_ONCE` runs may have more. Writing an answer needs eight times as much
memory.
A thousand runs with the largest outputs would exhaust a pod of 512 MB, and the start gate with it."""
_POSITION = re.compile(rf"\d{{{keys.INSTANT_DIGITS}}}#{RUN_ID_PATTERN.strip('^$')}", re.ASCII)
"""Position of a run in its part of the list."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filters of a list of runs.

    Attributes:
        states: States in views; empty means any.
        since: Earliest end; open runs also pass.
        until: Time before which a run must have ended.
    """

    namespace: str | None = None
    schedule: str | None = None
    states: frozenset[RunState] = frozenset()
    since: int | None = None
    until: int | None = None

    @property
    def may_be_open(self) -> bool:
        """Whether the row of an open run can match. A reported success is shown as `succeeded` before the owner has processed it."""
        return not self.states or bool(self.states & (OF_OPEN_RUNS | {RunState.SUCCEEDED}))

    @property
    def ends(self) -> list[bool]:
        """Parts of the history to read: True for succeeded runs, False for the others."""
        ended = self.states - OF_OPEN_RUNS if self.states else frozenset(RunState)
        return [each for each in (True, False) if any((state == RunState.SUCCEEDED) == each for state in ended)]

    def is_of(self, item: Item) -> bool:
        """Whether the item's schedule matches."""
        return self.namespace in (None, item["namespace"]) and self.schedule in (None, item["name"])

    def has_end(self, item: Item) -> bool:
        """Whether an ended run matches; the range already selects the times."""
        return self.is_of(item) and (not self.states or item["state"] in self.states)

    def has(self, run: Run) -> bool:
        """Whether an open run matches, in the state that views show."""
        shown = as_concluded(run)
        if self.states and shown.state not in self.states:
            return False
        if self.since is not None and shown.ended_at is not None and shown.ended_at < self.since:
            return False
        return self.until is None or (shown.ended_at is not None and shown.ended_at < self.until)


class RunReads:
    """Reads runs."""

    def __init__(self, store: Store, pools: Pools, cluster: MapReader, ranges: RangeReader) -> None:
        self._store = store
        self._pools = pools
        self._cluster = cluster
        self._ranges = ranges
        self._newest = NewestReader(store, pools)

    async def one(self, run_id: str) -> RunView:
        """Returns a run. Raises ApiProblem (404), InvalidInput (no such shard)."""
        shard = run_shard(run_id, (await self._cluster.current()).shards)
        item = await self._pools.read(lambda: self._one(shard, run_id))
        if item is None:
            raise not_found(f"run {run_id}: does not exist; ended runs are kept 30 days, and a waiting job has no run")
        return run_view(from_item(Run, item))

    def _one(self, shard: int, run_id: str) -> Item | None:
        # Two reads in this order, because an ending run moves to the history. A batch is no snapshot and could miss it in both places.
        key = keys.run(shard, run_id)
        item = self._store.get([key]).get(key)
        return item if item is not None else ended_run(self._store, shard, run_id)

    async def page(self, wanted: Wanted, place: Place, size: int) -> Page[RunView]:
        """Returns open runs, newest admission first; then ended runs, newest end first.

        Raises:
            ApiProblem: There are too many open runs (400).
            InvalidInput: The place belongs to another list.
        """
        _check(place)
        cluster = await self._cluster.current()
        # Open runs are read before ended ones, because an ending run moves to the history. Read concurrently, it could be missed in both
        # lists; in this order it is in both at worst.
        of_open: list[Item] = []
        if place.part == OPEN and wanted.may_be_open:
            of_open = await self._open(cluster, wanted, place.after, size + 1)
        chosen: dict[str, Key | None] = {str(item["id"]): None for item in of_open[:size]}
        places = {str(item["id"]): Place(OPEN, after=_position(item)) for item in of_open[:size]}
        if len(of_open) > size:
            following: Place | None = places[str(of_open[size - 1]["id"])]
        elif len(of_open) == size:
            following = Place(ENDED)
        else:
            before = place.after if place.part == ENDED else None
            ranges = _ranges(cluster, wanted, before)
            ended = await self._newest.page(ranges, size - len(of_open), wanted.has_end, OUTLINE_OF_END)
            for shard, item in ended.rows:
                # A run that ended between the reads is in both lists; the ended one is newer.
                chosen.pop(str(item["id"]), None)
                key, text = _key_and_position(shard, item)
                chosen[str(item["id"])], places[str(item["id"])] = key, Place(ENDED, after=text)
            following = None if ended.before is None else Place(ENDED, after=ended.before)
        # On a thread: for 60 schedules with 500 ended runs each it took 3 s, and would delay starts of programs.
        views, cut_at = await self._pools.read(partial(self._views, chosen, wanted))
        if cut_at is not None:
            following = places[cut_at]
        return Page(items=views, next_page_token="" if following is None else following.text())

    async def _open(self, cluster: ClusterMap, wanted: Wanted, before: str | None, most: int) -> list[Item]:
        """Returns outlines of the newest open runs by admission. All open runs are read, because they are stored by id."""
        shards = _shards(cluster, wanted)
        is_plain = not wanted.states and wanted.since is None and wanted.until is None

        def keep(item: Item) -> bool:
            if not wanted.is_of(item) or (before is not None and _position(item) >= before):
                return False
            return is_plain or wanted.has(from_item(Run, item))

        newest: list[Item] = []
        place: Place | None = Place()
        for _ in range(PAGES_MAX):
            assert place is not None
            found, place = await self._ranges.listed(
                shards, [Span.of_prefix(keys.RUN_PREFIX)], place, OPEN_AT_ONCE, keep, OUTLINE
            )
            newest = nlargest(most, [*newest, *(item for _, item in found)], key=_position)
            if place is None:
                return newest
        raise ApiProblem(400, "too many open runs to read; name a schedule, or states of ended runs")

    def _views(self, chosen: Mapping[str, Key | None], wanted: Wanted) -> tuple[list[RunView], str | None]:
        """Returns the whole runs, and the id of the last one if not all fit on a page. Blocking.

        Args:
            chosen: Keys of ended runs by run id; None for an open run.
            wanted: Filters that an open run must still match.
        """
        views: list[RunView] = []
        ids, taken = list(chosen), 0
        for first in range(0, len(ids), SHOWN_AT_ONCE):
            some = ids[first : first + SHOWN_AT_ONCE]
            runs = self._runs({each: chosen[each] for each in some})
            shown = [runs[each] for each in some if each in runs]
            taken += sum(map(_characters_of, shown))
            if first and taken > SHOWN_CHARACTERS_MAX:
                return views, ids[first - 1]
            views += [run_view(run) for run in shown if chosen[run.id] is not None or wanted.has(run)]
        return views, None

    def _runs(self, chosen: Mapping[str, Key | None]) -> dict[str, Run]:
        still_open = self._found(
            {keys.run(keys.shard_of_run(each), each): each for each, key in chosen.items() if key is None}
        )
        ended = self._found({key: each for each, key in chosen.items() if key is not None})
        # Read after the open runs, because an ending run moves to the history.
        moved = [each for each, key in chosen.items() if key is None and each not in still_open]
        since = {each: ended_run(self._store, keys.shard_of_run(each), each) for each in moved}
        return {
            **{each: from_item(Run, item) for each, item in since.items() if item is not None},
            **ended,
            **still_open,
        }

    def _found(self, wanted: Mapping[Key, str]) -> dict[str, Run]:
        items = self._store.get(list(wanted)) if wanted else {}
        return {wanted[key]: from_item(Run, item) for key, item in items.items()}


def _check(place: Place) -> None:
    fits = place.part in (OPEN, ENDED) and (place.after is None or _POSITION.fullmatch(place.after))
    if not fits:
        problem = Problem("page_token", "belongs to another list", "use the same filters as for the first page")
        raise InvalidInput([problem])


def _ranges(cluster: ClusterMap, wanted: Wanted, before: str | None) -> list[SortedRange]:
    since = "" if wanted.since is None else keys.instant_text(max(0, wanted.since))
    until = None if wanted.until is None else keys.instant_text(max(0, wanted.until))
    # A position continues after the instant, so the bare text of the instant sorts before all positions with it.
    end = min((each for each in (before, until) if each is not None), default=None)
    found: list[SortedRange] = []
    for succeeded in wanted.ends:
        prefix = keys.run_ends(succeeded)
        if wanted.namespace is not None and wanted.schedule is not None:
            prefix = keys.ended_runs_of(wanted.namespace, wanted.schedule, succeeded)
        found += [SortedRange(shard, prefix, since, end) for shard in _shards(cluster, wanted)]
    return found


def _shards(cluster: ClusterMap, wanted: Wanted) -> Sequence[int]:
    if wanted.namespace is not None and wanted.schedule is not None:
        return [schedule_shard(wanted.namespace, wanted.schedule, cluster.shards)]
    return range(cluster.shards)


def _position(item: Item) -> str:
    """Returns the position of an open run in its part of the list."""
    admitted_at = item["admitted_at"]
    assert isinstance(admitted_at, int)
    return keys.moment_text(admitted_at, str(item["id"]))


def _key_and_position(shard: int, item: Item) -> tuple[Key, str]:
    """Returns the key of an ended run, and its position in its part of the list. Both come from its sort key, or from its end's."""
    _, ended_at, run_id = str(item["sk"]).rsplit("#", 2)
    succeeded = item["state"] == RunState.SUCCEEDED
    key = keys.ended_run(shard, str(item["namespace"]), str(item["name"]), succeeded, int(ended_at), run_id)
    return key, keys.moment_text(int(ended_at), run_id)


def _characters_of(run: Run) -> int:
    return sum(len(text) for text in (run.order, run.outputs, run.failure) if text is not None)
