"""Cache of the items and ranges that an owner has read of its shard, updated by its own commits.

Every write demands the revision that was seen. So a wrong entry costs a refusal and another read, never a wrong
decision that takes effect. `Derived` caches values computed from the texts in those items.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.keys import shard_pk
from tidegate_core.rows.store_operations import Item, Key, RangeRead

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


from collections.abc import Callable, Hashable
from dataclasses import dataclass

R = TypeVar("R", bound="DataclassInstance")

ITEMS_MAX = 2_000
"""Items kept, least recently used evicted first.

At up to 3 KB each: 6 MB per busy shard, of which a node may have 256.
"""
RANGES_MAX = 64
"""Ranges kept (evidence chunks, pending jobs of a schedule); an evicted one is read again."""
RECORDS_MAX = 250
"""Decoded records kept, then all are dropped: those that the decisions of one transaction read, each run included.

They share their texts with the items.
"""


NOTHING: Final[Mapping[Key, int]] = MappingProxyType({})


class View:
    """Cache of one shard's items; `None` means known to be absent.

    Attributes:
        derived: Values derived from texts in the items.
    """

    def __init__(self, shard: int) -> None:
        self.derived = Derived()
        self._pk = shard_pk(shard)
        self._items: OrderedDict[Key, Item | None] = OrderedDict()
        self._ranges: OrderedDict[tuple[str, str], dict[str, Item]] = OrderedDict()
        self._records: dict[Key, tuple[Item, Any]] = {}
        self._elsewhere: dict[RangeRead, Sequence[Item]] = {}

    def knows(self, key: Key) -> bool:
        return key in self._items

    def item(self, key: Key) -> Item | None:
        self._items.move_to_end(key)
        return self._items[key]

    def record(self, record_type: type[R], key: Key, item: Item) -> R:
        """Returns the decoded record of an item, decoded once per item: items never change in place."""
        known, record = self._records.get(key, (None, None))
        if known is not item or type(record) is not record_type:
            if len(self._records) >= RECORDS_MAX:
                self._records.clear()
            record = from_item(record_type, item)
            self._records[key] = item, record
        return record

    def range(self, low: str, high: str) -> Mapping[str, Item] | None:
        """Returns sort key to item, in order; None when the range was not read."""
        return self._ranges.get((low, high))

    def learn(self, wanted: Iterable[Key], found: Mapping[Key, Item]) -> None:
        for key in wanted:
            self._set(key, found.get(key))

    def offer(self, key: Key, item: Item) -> None:
        """Adds an item from a read that may be older than a cached item.

        It never replaces a cached item. It replaces a cached absence, because another owner may have written an item under a deleted key.
        """
        if self._items.get(key) is None:
            self._set(key, item)

    def learn_range(self, low: str, high: str, items: Iterable[Item]) -> None:
        self._ranges[(low, high)] = {str(item["sk"]): item for item in items}
        while len(self._ranges) > RANGES_MAX:
            self._ranges.popitem(last=False)

    def elsewhere(self, rows: RangeRead) -> Sequence[Item] | None:
        """Returns the first rows of a range in any partition; None when they were not read."""
        return self._elsewhere.get(rows)

    def learn_elsewhere(self, rows: RangeRead, found: Sequence[Item]) -> None:
        """Adds rows that other owners write. They are correct only at the time of the read."""
        self._elsewhere[rows] = found

    def forget_elsewhere(self) -> None:
        self._elsewhere.clear()

    def assume_absent(self, key: Key) -> None:
        """Assumes that a key was never used; if that is wrong, the condition of the write finds out."""
        self._items.setdefault(key, None)

    def assume_unread(self, key: Key) -> None:
        """Drops the entry, so that the next write of this key has no condition."""
        self._items.pop(key, None)

    def applied(self, writes: Mapping[Key, Item | None], token: str, behind: Mapping[Key, int] = NOTHING) -> None:
        """Adopts the writes of a committed transaction; `behind` holds the revisions above which new items start."""
        for key, item in writes.items():
            before = self._items.get(key)
            revision = before.get("rev", 0) if before else behind.get(key, 0)
            assert isinstance(revision, int)
            stored = None if item is None else {**item, "rev": revision + 1, "w": token}
            if key.table == "main":
                self._set(key, stored)
                self._set_in_ranges(key, stored)
            else:
                self._items.pop(key, None)

    def forget(self, keys: Iterable[Key]) -> None:
        """Drops items that may have changed elsewhere, by ownerless writes or a refusal, and every range that holds
        them.
        """
        for key in keys:
            self._items.pop(key, None)
            for span in [span for span in self._ranges if key.pk == self._pk and span[0] <= key.sk <= span[1]]:
                del self._ranges[span]

    def _set(self, key: Key, item: Item | None) -> None:
        self._items[key] = item
        self._items.move_to_end(key)
        while len(self._items) > ITEMS_MAX:
            self._items.popitem(last=False)

    def _set_in_ranges(self, key: Key, item: Item | None) -> None:
        if key.pk != self._pk:
            return
        for (low, high), known in self._ranges.items():
            if low <= key.sk <= high:
                if item is None:
                    known.pop(key.sk, None)
                else:
                    known[key.sk] = item


S = TypeVar("S")

CHARACTERS_MAX: Final = 64_000
"""Characters of the texts behind cached values, the last requested one excluded: a shard's small logs.

A node may have 256 shards.
"""


@dataclass(slots=True)
class _Kept:
    texts: list[str]
    characters: int
    state: Any


class Derived:
    """Cache of values derived from append-only texts, so that each text is processed once; least recently used evicted
    first.

    Evidence is a log of write-once chunks. Each decision needs its result. If each recomputed it, the cost of every
    further event would grow with the length of the log.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._characters = 0

    def of(self, name: Hashable, texts: Sequence[str], begin: Callable[[], S], add: Callable[[S, str], None]) -> S:
        """Returns the value after all texts. It stays in the cache: a caller that changes it must copy it.

        Args:
            name: Name of the value and of its computation.
            texts: Texts in order. If they do not begin with the cached ones, all are processed.
            begin: Returns the value before the first text.
            add: Advances the value by one text. If it raises, the value is not cached.
        """
        kept = self._take(name)
        if kept is None or list(texts[: len(kept.texts)]) != kept.texts:
            kept = _Kept([], 0, begin())
        for text in texts[len(kept.texts) :]:
            add(kept.state, text)
            kept.texts.append(text)
            kept.characters += len(text)
        self._keep(name, kept)
        state: S = kept.state
        return state

    def _take(self, name: Hashable) -> _Kept | None:
        kept = self._kept.pop(name, None)
        if kept is not None:
            self._characters -= kept.characters
        return kept

    def _keep(self, name: Hashable, kept: _Kept) -> None:
        self._kept[name] = kept
        self._characters += kept.characters
        while len(self._kept) > 1 and self._characters - kept.characters > CHARACTERS_MAX:
            _, oldest = self._kept.popitem(last=False)
            self._characters -= oldest.characters
