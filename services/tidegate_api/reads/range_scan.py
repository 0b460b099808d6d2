"""Reads lists over one or all shards, in pages, with a bounded number of shards at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tidegate_api.http.page_tokens import Place
from tidegate_api.http.problem_responses import ApiProblem
from tidegate_api.thread_pools import Pools
from tidegate_core.language.values.problems import InvalidInput, Problem
from tidegate_core.rows.keys import LAST, shard_pk
from tidegate_core.rows.store_operations import Item, RangeRead, Table
from tidegate_ports.store import Store

SHARDS_AT_ONCE = 16
"""Shards that are read at once, the number of read threads. 256 empty shards take about a quarter of a second."""

SCANNED_OF_SHARD_MAX = 5_000
"""Rows of one shard that a page reads. A filter may keep none of them, and the client may have gone."""
SCANNED_MAX = 20_000
"""Rows after which a page starts no further shards. With the shards that are read at once, a page reads at most 100,000 rows."""
PAGES_MAX = 50
"""Most pages of a complete scan: 250,000 rows or more."""

Keep: TypeAlias = Callable[[Item], bool]
Shape: TypeAlias = Callable[[Item], Item]
"""Returns the fields of a kept item that stay in memory: some lists read 100,000 items and show a few."""


@dataclass(frozen=True, slots=True)
class Span:
    """Sort keys `low` to `high` of a table, in every shard of a list."""

    low: str
    high: str
    table: Table = "main"

    @classmethod
    def of_prefix(cls, prefix: str, table: Table = "main") -> Span:
        return cls(prefix, prefix + LAST, table)


class _Scan(NamedTuple):
    """Rows of one shard.

    Attributes:
        kept: Kept items, in order.
        scanned: Number of rows that were read.
        stopped_at: Sort key up to which rows were read, if the scan stopped before the end with too few items; otherwise None.
    """

    kept: list[Item]
    scanned: int
    stopped_at: str | None = None


def everything(_item: Item) -> bool:
    return True


def whole(item: Item) -> Item:
    return item


def outline(*fields: str) -> Shape:
    """Returns a shape that keeps these fields, if an item has them."""
    return lambda item: {name: item[name] for name in fields if name in item}


class RangeReader:
    """Reads spans of one or several shards."""

    def __init__(self, store: Store, pools: Pools) -> None:
        self._store = store
        self._pools = pools

    async def listed(
        self,
        shards: Sequence[int],
        spans: Sequence[Span],
        place: Place,
        size: int,
        keep: Keep = everything,
        shape: Shape = whole,
    ) -> tuple[list[tuple[int, Item]], Place | None]:
        """Returns up to `size` kept items as (shard, item), by span and shard, and the place where the list continues.

        With a narrow filter a page ends after a bounded number of rows and may be short or empty. A shape must keep the sort key.

        Raises:
            InvalidInput: The place belongs to another list.
        """
        found: list[tuple[int, Item]] = []
        _check(place, spans)
        scanned = 0
        for part in range(place.part, len(spans)):
            for window in _windows(shards, place, part):
                if scanned >= SCANNED_MAX:
                    return found, Place(part, window[0])
                wanted = size - len(found) + 1
                scans = await asyncio.gather(
                    *(
                        self._first(spans[part], shard, _after(place, part, shard), wanted, keep, shape)
                        for shard in window
                    )
                )
                for shard, scan in zip(window, scans, strict=True):
                    for item in scan.kept:
                        if len(found) == size:
                            return found, place_after(spans, found[-1])
                        found.append((shard, item))
                    if scan.stopped_at is not None:
                        return found, Place(part, shard, scan.stopped_at)
                scanned += sum(scan.scanned for scan in scans)
        return found, None

    async def all_of(
        self, shards: Sequence[int], span: Span, most: int, keep: Keep = everything, shape: Shape = whole
    ) -> list[tuple[int, Item]]:
        """Returns all kept items of a span, at most `most`.

        Raises:
            ApiProblem: The span has too many rows (400).
        """
        found: list[tuple[int, Item]] = []
        place: Place | None = Place()
        for _ in range(PAGES_MAX):
            assert place is not None
            page, place = await self.listed(shards, [span], place, most - len(found), keep, shape)
            found += page
            if place is None or len(found) == most:
                return found
        raise ApiProblem(400, "too many rows to read; name a namespace and a schedule")

    async def newest(self, shard: int, span: Span, size: int, keep: Keep, scanned_max: int) -> list[Item]:
        """Returns up to `size` kept items from the end of the span, newest first. It reads at most `scanned_max` rows."""
        return await self._pools.read(lambda: self._newest(shard, span, size, keep, scanned_max))

    async def _first(self, span: Span, shard: int, after: str | None, size: int, keep: Keep, shape: Shape) -> _Scan:
        return await self._pools.read(lambda: self._read_first(span, shard, after, size, keep, shape))

    def _read_first(self, span: Span, shard: int, after: str | None, size: int, keep: Keep, shape: Shape) -> _Scan:
        kept: list[Item] = []
        scanned = 0
        while True:
            page = self._store.query(
                RangeRead(shard_pk(shard), span.low, span.high, limit=max(size, 50), after=after, table=span.table)
            )
            kept.extend(shape(item) for item in page.items if keep(item))
            scanned += len(page.items)
            if len(kept) >= size or page.next_after is None:
                return _Scan(kept[:size], scanned)
            if scanned >= SCANNED_OF_SHARD_MAX:
                return _Scan(kept, scanned, page.next_after)
            after = page.next_after

    def _newest(self, shard: int, span: Span, size: int, keep: Keep, scanned_max: int) -> list[Item]:
        kept: list[Item] = []
        scanned, after = 0, None
        while True:
            page = self._store.query(
                RangeRead(
                    shard_pk(shard),
                    span.low,
                    span.high,
                    limit=max(size, 50),
                    after=after,
                    table=span.table,
                    newest_first=True,
                )
            )
            kept.extend(item for item in page.items if keep(item))
            scanned += len(page.items)
            if len(kept) >= size or page.next_after is None or scanned >= scanned_max:
                return kept[:size]
            after = page.next_after


def _check(place: Place, spans: Sequence[Span]) -> None:
    inside = place.part < len(spans)
    if inside and place.after is not None:
        span = spans[place.part]
        inside = span.low <= place.after <= span.high
    if not inside:
        problem = Problem("page_token", "belongs to another list", "use the same filters as for the first page")
        raise InvalidInput([problem])


def _windows(shards: Sequence[int], place: Place, part: int) -> Iterator[Sequence[int]]:
    """Yields the shards from a place on, in groups that are read at once."""
    left = [shard for shard in shards if shard >= place.shard] if part == place.part else list(shards)
    if part == place.part and place.after is not None:
        # The previous page stopped within this shard, which may fill the whole page.
        yield left[:1]
        left = left[1:]
    for first in range(0, len(left), SHARDS_AT_ONCE):
        yield left[first : first + SHARDS_AT_ONCE]


def _after(place: Place, part: int, shard: int) -> str | None:
    return place.after if (part, shard) == (place.part, place.shard) else None


def place_after(spans: Sequence[Span], last: tuple[int, Item]) -> Place:
    """Returns the place after the last item of a page."""
    shard, item = last
    sort_key = str(item["sk"])
    part = next(number for number, span in enumerate(spans) if span.low <= sort_key <= span.high)
    return Place(part, shard, sort_key)
