"""The subscription index: which schedules subscribe to an event.

It is cached per node and current at each match.

A subscription is written first, then the version of its index slice rises, then the request is acknowledged. Matching
reads the versions *after* it fetched the event: acknowledged(create) < produced(event) < fetched < read. So a
schedule that was acknowledged before the event was produced is always found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read, ReadRange
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.store_operations import Item, Key, Page, RangeRead
from tidegate_core.rows.trigger_rows import IndexRow


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription of one leaf and generation, with its first offsets.

    Attributes:
        row: Row of the index.
        offsets: `<topic id>/<topic partition>` to the first offset that counts; empty for `run_status`.
        beside: Subscriptions that other owners wrote for the same activation, with end offsets from an earlier or
            later reading.
    """

    row: IndexRow
    offsets: Mapping[str, int]
    beside: tuple[Subscription, ...] = ()

    def accepts(self, topic_id: str, topic_partition: int, offset: int, append_time: int) -> bool:
        """Returns whether an event counts.

        An event below the activation's end offset never counts. If the end offset is unknown, because the topic
        partition is newer, the event counts when its append time follows the request. One accepting row suffices: the
        end offsets of a late row may have been read after the receipt.
        """
        first = self.offsets.get(f"{topic_id}/{topic_partition}")
        heard = append_time >= self.row.asked_at if first is None else offset >= first
        return heard or any(each.accepts(topic_id, topic_partition, offset, append_time) for each in self.beside)


class SubscriptionIndex:
    """The cached index. All partition actors of a node share it; each reads through its own context."""

    def __init__(self) -> None:
        self._versions: dict[int, int] = {}
        self._listeners: dict[int, dict[str, tuple[Subscription, ...]]] = {}
        self._vectors: dict[int, dict[str, Mapping[str, int]]] = {}

    def match(self, host: ActorContext, event_keys: Iterable[str]) -> Operation[dict[str, tuple[Subscription, ...]]]:
        """Returns the subscriptions of each event key, as of versions that were read after this call."""
        wanted = sorted(set(event_keys))
        shards = sorted({keys.index_shard_of(event_key) for event_key in wanted})
        found = yield from host.read_for_good(Read(tuple(keys.index_version(shard) for shard in shards)))
        assert isinstance(found, Items)
        for shard in shards:
            version = _version(found.found.get(keys.index_version(shard)))
            if version > self._versions.get(shard, -1):
                yield from self._load(host, shard, version)
        return {event_key: self._listeners[keys.index_shard_of(event_key)].get(event_key, ()) for event_key in wanted}

    def _load(self, host: ActorContext, shard: int, version: int) -> Operation[None]:
        rows: list[IndexRow] = []
        after: str | None = None
        while True:
            wanted = RangeRead(keys.index_pk(shard), "a", keys.LAST, after=after)
            page = yield from host.read_for_good(ReadRange(wanted))
            assert isinstance(page, Page)
            rows.extend(from_item(IndexRow, item) for item in page.items)
            after = page.next_after
            if after is None:
                break
        vectors = yield from self._load_vectors(host, shard, rows)
        if version < self._versions.get(shard, -1):
            return  # Another actor of this node has loaded a newer version.
        self._listeners[shard] = _by_event_key(rows, vectors)
        self._vectors[shard] = vectors
        self._versions[shard] = version

    def _load_vectors(
        self, host: ActorContext, shard: int, rows: list[IndexRow]
    ) -> Operation[dict[str, Mapping[str, int]]]:
        """Returns the vectors of these rows. A missing one was removed with its row, which was read before."""
        known = self._vectors.get(shard, {})
        named = sorted({row.vector for row in rows if row.vector is not None})
        missing = [vector for vector in named if vector not in known]
        vectors = {vector: known[vector] for vector in named if vector in known}
        if missing:
            found = yield from host.read_for_good(Read(tuple(keys.offsets_vector(vector) for vector in missing)))
            assert isinstance(found, Items)
            items = {vector: found.found.get(keys.offsets_vector(vector)) for vector in missing}
            vectors |= {vector: stored_vector(item) for vector, item in items.items() if item is not None}
        return vectors


def _by_event_key(
    rows: Iterable[IndexRow], vectors: Mapping[str, Mapping[str, int]]
) -> dict[str, tuple[Subscription, ...]]:
    """Returns the subscriptions by event key: one per leaf of an activation, even when several owners
    wrote rows for it.
    """
    by_leaf: dict[tuple[str, str, str, str, int, int], list[Subscription]] = {}
    for row in rows:
        if row.vector is None or row.vector in vectors:
            offsets = {} if row.vector is None else vectors[row.vector]
            leaf = (row.event_key, row.namespace, row.name, row.incarnation, row.generation, row.leaf)
            by_leaf.setdefault(leaf, []).append(Subscription(row, offsets))
    by_key: dict[str, list[Subscription]] = {}
    for (event_key, *_), (first, *others) in by_leaf.items():
        by_key.setdefault(event_key, []).append(replace(first, beside=tuple(others)))
    return {event_key: tuple(listeners) for event_key, listeners in by_key.items()}


def _version(item: Item | None) -> int:
    version = 0 if item is None else item["version"]
    assert isinstance(version, int)
    return version


def stored_vector(item: Item) -> Mapping[str, int]:
    """Returns the offsets in a vector's item, by `<topic id>/<topic partition>`."""
    text = item["offsets"]
    assert isinstance(text, str)
    offsets: dict[str, int] = json.loads(text)
    return offsets


def vector_item(owner: str, offsets: Mapping[str, int]) -> tuple[str, Key, Item]:
    """Returns id, key and item of an end-offset vector. It belongs to one activation, so it can be removed with it."""
    text = json.dumps(dict(sorted(offsets.items())), separators=(",", ":"))
    vector_id = keys.text_hash_once(owner, text)
    key = keys.offsets_vector(vector_id)
    return vector_id, key, {"pk": key.pk, "sk": key.sk, "offsets": text}
