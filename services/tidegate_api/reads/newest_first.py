"""Newest first over many ranges: rows of several shards, each sorted by the same text, merged page by page.

A page reads a few rows of each range, and more only where those do not suffice. So it costs one read for each range, and about as many
rows as it returns, however many there are.
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
"""Rows that are read of a range at first. Rows of 250 bytes: sixteen of them cost what one costs."""
ROWS_MAX: Final = 500
"""Rows of a range that are read together, where a filter keeps few of them."""


@dataclass(frozen=True, slots=True)
class SortedRange:
    """A range of a shard whose sort keys are `prefix` and then the text by which all ranges of a list are sorted.

    Attributes:
        since: First text of the list; empty: from the beginning.
        before: Text before which the list begins, at its newest end; None: with the newest row.
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
        before: Text before which the next page begins; None: there is nothing more.
    """

    rows: list[tuple[int, Item]]
    before: str | None


@dataclass(slots=True)
class _Source:
    """A range that is being read from its end.

    Attributes:
        rows: Kept, and not returned yet.
        read_to: Text of the oldest row that was read.
        after: Sort key after which to go on.
        is_done: Nothing is left to read.
    """

    of: SortedRange
    rows: list[Item] = field(default_factory=list)
    read_to: str = LAST
    after: str | None = None
    is_done: bool = False


class NewestReader:
    """Reads ranges from their ends."""

    def __init__(self, store: Store, pools: Pools) -> None:
        self._store = store
        self._pools = pools

    async def page(
        self, ranges: Sequence[SortedRange], size: int, keep: Keep = everything, shape: Shape = whole
    ) -> NewestPage:
        """Returns up to `size` kept rows. Where little is kept, a page ends after about `SCANNED_MAX` rows, with few rows or none.

        Args:
            ranges: In any order. No two rows have the same text.
            size: Most rows, 1 or more.
            keep: Which rows count.
            shape: What is held of a row: its sort key at least.
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
            # Down to here all ranges have been read: what lies before it may be older than a row that nobody has read yet.
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
        """Reads the next rows of a range, and returns how many."""
        of = source.of
        # A range includes its end: the row at which the page before ended, where it is of this range, is left out below.
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
    """Takes the rows that are not older than a text from their ranges, and returns them sorted."""
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
