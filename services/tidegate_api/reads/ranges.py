"""Lists over one shard or over all of them, in pages, with a bounded number of shards read at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tidegate_api.page_tokens import Place
from tidegate_api.pools import Pools
from tidegate_core.model.problems import InvalidInput, Problem
from tidegate_core.store.keys import LAST, shard_pk
from tidegate_core.store.values import Item, RangeRead, Table
from tidegate_ports.store import Store

SHARDS_AT_ONCE = 16
"""As many as there are threads for reads: 256 empty shards take about a quarter of a second."""

Keep: TypeAlias = Callable[[Item], bool]


@dataclass(frozen=True, slots=True)
class Span:
    """Sort keys `low` to `high` of a table, in every shard of a list."""

    low: str
    high: str
    table: Table = "main"

    @classmethod
    def of_prefix(cls, prefix: str, table: Table = "main") -> Span:
        return cls(prefix, prefix + LAST, table)


def everything(_item: Item) -> bool:
    return True


class RangeReader:
    """Reads spans of shards."""

    def __init__(self, store: Store, pools: Pools) -> None:
        self._store = store
        self._pools = pools

    async def listed(
        self, shards: Sequence[int], spans: Sequence[Span], place: Place, size: int, keep: Keep = everything
    ) -> tuple[list[tuple[int, Item]], Place | None]:
        """Returns up to `size` kept items as (shard, item), span after span and shard after shard, and where to go on.

        Raises:
            InvalidInput: The place is not within the list.
        """
        found: list[tuple[int, Item]] = []
        _check(place, spans)
        for part in range(place.part, len(spans)):
            begin = place.shard if part == place.part else 0
            left = [shard for shard in shards if shard >= begin]
            for first in range(0, len(left), SHARDS_AT_ONCE):
                window = left[first : first + SHARDS_AT_ONCE]
                wanted = size - len(found) + 1
                pages = await asyncio.gather(
                    *(self._first(spans[part], shard, _after(place, part, shard), wanted, keep) for shard in window)
                )
                for shard, items in zip(window, pages, strict=True):
                    for item in items:
                        if len(found) == size:
                            return found, _place_after(spans, found[-1])
                        found.append((shard, item))
        return found, None

    async def all_of(
        self, shards: Sequence[int], span: Span, most: int, keep: Keep = everything
    ) -> list[tuple[int, Item]]:
        """Returns all kept items of a span, at most `most`."""
        found, _ = await self.listed(shards, [span], Place(), most, keep)
        return found

    async def newest(self, shard: int, span: Span, size: int, keep: Keep, scanned_max: int) -> list[Item]:
        """Returns up to `size` kept items from the end of the span, newest first, looking at `scanned_max` at most."""
        return await self._pools.read(lambda: self._newest(shard, span, size, keep, scanned_max))

    async def _first(self, span: Span, shard: int, after: str | None, size: int, keep: Keep) -> list[Item]:
        return await self._pools.read(lambda: self._read_first(span, shard, after, size, keep))

    def _read_first(self, span: Span, shard: int, after: str | None, size: int, keep: Keep) -> list[Item]:
        kept: list[Item] = []
        while True:
            # Ends with the span: each page begins after the one before.
            page = self._store.query(
                RangeRead(shard_pk(shard), span.low, span.high, limit=max(size, 50), after=after, table=span.table)
            )
            kept.extend(item for item in page.items if keep(item))
            if len(kept) >= size or page.next_after is None:
                return kept[:size]
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
        problem = Problem("page_token", "belongs to another list", "repeat the filters of the first page")
        raise InvalidInput([problem])


def _after(place: Place, part: int, shard: int) -> str | None:
    return place.after if (part, shard) == (place.part, place.shard) else None


def _place_after(spans: Sequence[Span], last: tuple[int, Item]) -> Place:
    shard, item = last
    sort_key = str(item["sk"])
    part = next(number for number, span in enumerate(spans) if span.low <= sort_key <= span.high)
    return Place(part, shard, sort_key)
