"""What an owner has read of its shard: items and ranges, kept right by applying its own commits.

It is a cache and nothing more: every write is conditioned on the revision seen, so a wrong entry costs a refusal and a
fresh read, never a wrong decision that takes effect.
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
"""Items kept; the least recently used go first. At up to 3 KB of memory an item 6 MB per busy shard, of which a node may have 256."""
RANGES_MAX = 64
"""Ranges kept (evidence chunks, pending jobs of a schedule); each is read again when it was pushed out."""
RECORDS_MAX = 250
"""Records kept beside their items, then all are forgotten: what the decisions of one group ask for, again each time that one of them
is run again. They share their texts with the items."""


NOTHING: Final[Mapping[Key, int]] = MappingProxyType({})


class View:
    """Cache of one shard's items; `None` stands for "known to be absent".

    Attributes:
        derived: What follows from texts in them.
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
        """Returns the record of the item under a key, made once as long as it is the same item: none is changed in place."""
        known, record = self._records.get(key, (None, None))
        if known is not item or type(record) is not record_type:
            if len(self._records) >= RECORDS_MAX:
                self._records.clear()
            record = from_item(record_type, item)
            self._records[key] = item, record
        return record

    def range(self, low: str, high: str) -> Mapping[str, Item] | None:
        """Returns sort key to item, in order, or None when the range has not been read."""
        return self._ranges.get((low, high))

    def learn(self, wanted: Iterable[Key], found: Mapping[Key, Item]) -> None:
        for key in wanted:
            self._set(key, found.get(key))

    def offer(self, key: Key, item: Item) -> None:
        """Takes in an item from a read that may be older than the one that is known here, but not older than that there was none: others may
        have put it since, under the key of what was deleted.
        """
        if self._items.get(key) is None:
            self._set(key, item)

    def learn_range(self, low: str, high: str, items: Iterable[Item]) -> None:
        self._ranges[(low, high)] = {str(item["sk"]): item for item in items}
        while len(self._ranges) > RANGES_MAX:
            self._ranges.popitem(last=False)

    def elsewhere(self, rows: RangeRead) -> Sequence[Item] | None:
        """Returns the first such rows of whichever partition; None when they have not been read since."""
        return self._elsewhere.get(rows)

    def learn_elsewhere(self, rows: RangeRead, found: Sequence[Item]) -> None:
        """Takes in rows that others write: true of that moment, and kept right by nothing here."""
        self._elsewhere[rows] = found

    def forget_elsewhere(self) -> None:
        self._elsewhere.clear()

    def assume_absent(self, key: Key) -> None:
        """For keys that have never been used: the write's condition finds out if that is wrong."""
        self._items.setdefault(key, None)

    def assume_unread(self, key: Key) -> None:
        """The next write of this key carries no condition."""
        self._items.pop(key, None)

    def applied(self, writes: Mapping[Key, Item | None], token: str, behind: Mapping[Key, int] = NOTHING) -> None:
        """Takes over what a committed transaction wrote; `behind` are the revisions above which new items begin."""
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
        """Drops items that may have changed elsewhere (ownerless writes, a refusal), and every range that holds them."""
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
"""Of the texts of what is kept beside the last one asked for: what a shard keeps of small logs, of which a node may have 256."""


@dataclass(slots=True)
class _Kept:
    texts: list[str]
    characters: int
    state: Any


class Derived:
    """States by name, each with the texts that it follows from; the least recently asked for go first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._characters = 0

    def of(self, name: Hashable, texts: Sequence[str], begin: Callable[[], S], add: Callable[[S, str], None]) -> S:
        """Returns the state behind all texts. It is kept: whoever changes it changes a copy.

        Args:
            name: Of the state, and of how it is made.
            texts: In their order. Where those of before are not the first ones of them, all are gone through.
            begin: Returns the state before the first text.
            add: Moves a state on by one text. What it raises leaves nothing behind.
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
