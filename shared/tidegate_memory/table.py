"""One table in memory: items by partition key and sort key, with sort keys in order.

Stored items are never changed in place: a write replaces them. So this package may hand them out for reading without
a copy.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tidegate_core.rows.store_operations import Item


class Stored(NamedTuple):
    """An item with its size in bytes, counted once."""

    item: Item
    size: int


@dataclass(slots=True)
class _Collection:
    items: dict[str, Stored] = field(default_factory=dict)
    sort_keys: list[str] = field(default_factory=list)


class MemoryTable:
    """Items of one table."""

    def __init__(self) -> None:
        self._collections: dict[str, _Collection] = {}

    def get(self, pk: str, sk: str) -> Stored | None:
        collection = self._collections.get(pk)
        return None if collection is None else collection.items.get(sk)

    def put(self, pk: str, sk: str, stored: Stored) -> None:
        collection = self._collections.setdefault(pk, _Collection())
        if sk not in collection.items:
            insort(collection.sort_keys, sk)
        collection.items[sk] = stored

    def delete(self, pk: str, sk: str) -> None:
        collection = self._collections.get(pk)
        if collection is None or collection.items.pop(sk, None) is None:
            return
        del collection.sort_keys[bisect_left(collection.sort_keys, sk)]
        if not collection.items:
            del self._collections[pk]

    def between(self, pk: str, low: str, high: str, *, after: str | None, descending: bool) -> Iterator[Stored]:
        """Yields items in `low..high` (both inclusive) that come after `after` in the direction of reading.

        Python orders text by code point and DynamoDB by UTF-8 bytes; both give the same order.
        """
        collection = self._collections.get(pk)
        if collection is None:
            return
        keys = collection.sort_keys
        start, end = bisect_left(keys, low), bisect_right(keys, high)
        if after is not None and descending:
            end = min(end, bisect_left(keys, after))
        elif after is not None:
            start = max(start, bisect_right(keys, after))
        for position in range(end - 1, start - 1, -1) if descending else range(start, end):
            yield collection.items[keys[position]]

    def all(self) -> Iterator[Stored]:
        """Yields every item; partition keys come in the order of their first write."""
        for collection in self._collections.values():
            for sk in collection.sort_keys:
                yield collection.items[sk]
