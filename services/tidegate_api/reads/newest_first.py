"""Reads many ranges newest first: merges rows of several shards, sorted by the same text, page by page.

A page first reads a few rows of each range, and more only if needed. So it costs one read for each range and about as many rows as it
returns, independent of the number of stored rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tidegate_api.reads.range_scan import SCANNED_MAX, SHARDS_AT_ONCE, Keep, Shape, everything, whole
from tidegate_api.thread_pools import Pools
from tidegate_core.rows.keys import LAST, shard_pk
from tidegate_core.rows.store_operations import Item, RangeRead, Table
from tidegate_ports.store import Store

ROWS_MIN: Final = 4
"""Fewest rows of a first read of a range. A row has 250 bytes, so sixteen rows cost as much as one."""
ROWS_MAX: Final = 500
"""Most rows of one read of a range, if a filter keeps few of them."""


@dataclass(frozen=True, slots=True)
class SortedRange:
    """A range of a shard. Its sort keys are `prefix` and a text; all ranges of a list are sorted by this text.

    Attributes:
        since: Smallest text of the list; empty means no bound.
        before: Text that all rows must precede; None means no bound.
    """

    shard: int
    prefix: str
    since: str = ""
    before: str | None = None
    table: Table = "history"

    def text_of(self, item: Item) -> str:
        return str(item["sk"])[len(self.prefix) :]


@dataclass(frozen=True, slots=True)
class NewestPage:
    """A page of rows, each with its shard, newest first.

    Attributes:
        before: Text that the rows of the next page precede; None at the end of the list.
    """

    rows: list[tuple[int, Item]]
    before: str | None


@dataclass(slots=True)
class _Source:
    """A range that is read from its end.

    Attributes:
        rows: Kept rows that were not returned so far.
        read_to: Text of the oldest row that was read.
        after: Sort key after which the next read continues.
        is_done: Whether the whole range was read.
    """

    of: SortedRange
    rows: list[Item] = field(default_factory=list)
    read_to: str = LAST
    after: str | None = None
    is_done: bool = False


class NewestReader:
    """Merges ranges, read from their ends."""

    def __init__(self, store: Store, pools: Pools) -> None:
        self._store = store
        self._pools = pools

    async def page(
        self, ranges: Sequence[SortedRange], size: int, keep: Keep = everything, shape: Shape = whole
    ) -> NewestPage:
        """Returns up to `size` kept rows. With a narrow filter a page ends after about `SCANNED_MAX` rows and may be short or empty.

        Args:
            ranges: Ranges in any order. No two rows may have the same text.
            size: Most rows, 1 or more.
            keep: Filter of rows.
            shape: Returns the fields of a row that are kept; they must include the sort key.
        """
        sources = [_Source(each) for each in ranges]
        found: list[tuple[int, Item]] = []
        scanned, limit = 0, ROWS_MIN + 4 * (-(-size // max(1, len(sources))))
        while True:
            empty = [each for each in sources if not each.rows and not each.is_done]
            for first in range(0, len(empty), SHARDS_AT_ONCE):
                some = empty[first : first + SHARDS_AT_ONCE]
                scanned += sum(await asyncio.gather(*(self._read(each, limit, keep, shape) for each in some)))
            limit = min(2 * limit, ROWS_MAX)
            # All ranges are read down to this text. Earlier rows may be older than rows that are still unread.
            read_to = max((each.read_to for each in sources if not each.is_done), default="")
            found += _taken(sources, read_to)
            if len(found) > size or (len(found) == size and read_to):
                return NewestPage(found[:size], _text_of(ranges, found[size - 1]))
            if not read_to:
                return NewestPage(found, None)
            if scanned >= SCANNED_MAX and read_to != LAST:
                return NewestPage(found, read_to)

    async def _read(self, source: _Source, limit: int, keep: Keep, shape: Shape) -> int:
        return await self._pools.read(lambda: self._read_more(source, limit, keep, shape))

    def _read_more(self, source: _Source, limit: int, keep: Keep, shape: Shape) -> int:
        """Reads the next rows of a range. Returns their number."""
        of = source.of
        # A range includes its end, so the last row of the previous page is skipped below if it is in this range.
        low, high = of.prefix + of.since, of.prefix + (LAST if of.before is None else of.before)
        if low > high:
            source.is_done = True
            return 0
        page = self._store.query(
            RangeRead(shard_pk(of.shard), low, high, limit=limit, after=source.after, table=of.table, newest_first=True)
        )
        source.after, source.is_done = page.next_after, page.next_after is None
        for item in page.items:
            source.read_to = of.text_of(item)
            if source.read_to != of.before and keep(item):
                source.rows.append(shape(item))
        return len(page.items)


def _taken(sources: Sequence[_Source], read_to: str) -> list[tuple[int, Item]]:
    """Removes the rows that are not older than a text from their ranges. Returns them sorted, newest first."""
    taken: list[tuple[str, int, Item]] = []
    for source in sources:
        ready = [item for item in source.rows if source.of.text_of(item) >= read_to]
        taken += [(source.of.text_of(item), source.of.shard, item) for item in ready]
        del source.rows[: len(ready)]
    taken.sort(key=lambda each: each[0], reverse=True)
    return [(shard, item) for _, shard, item in taken]


def _text_of(ranges: Sequence[SortedRange], last: tuple[int, Item]) -> str:
    shard, item = last
    return next(
        each.text_of(item) for each in ranges if each.shard == shard and str(item["sk"]).startswith(each.prefix)
    )
