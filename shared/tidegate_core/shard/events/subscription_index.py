"""Which schedules listen to an event: the reverse index, cached per node, right at the moment of asking (DESIGN 7).

Index rows are written first, then the version of their index shard is raised, then the schedule's request is acknowledged.
Whoever matches an event reads the versions *after* the event was fetched: acknowledged(create) < produced(event) < fetched <
read, so a schedule that was acknowledged before the event was produced is always seen.
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
    """One leaf of one schedule version that listens to an event key.

    Attributes:
        row: The index row.
        offsets: `<topic id>/<topic partition>` to the first offset that counts; empty for run_status.
        beside: Those of rows that other owners wrote for the same activation, with ends that they read before or later.
    """

    row: IndexRow
    offsets: Mapping[str, int]
    beside: tuple[Subscription, ...] = ()

    def accepts(self, topic_id: str, topic_partition: int, offset: int, append_time: int) -> bool:
        """Events below the activation's end offsets never count. Those of topic partitions that are newer than it, or that no
        broker told of yet, count when they came after the request. One row that hears is enough: of a late one's ends it is not
        known whether they were read before the receipt.
        """
        first = self.offsets.get(f"{topic_id}/{topic_partition}")
        heard = append_time >= self.row.asked_at if first is None else offset >= first
        return heard or any(each.accepts(topic_id, topic_partition, offset, append_time) for each in self.beside)


class SubscriptionIndex:
    """Shared by all partition actors of a node; each asks through its own host."""

    def __init__(self) -> None:
        self._versions: dict[int, int] = {}
        self._listeners: dict[int, dict[str, tuple[Subscription, ...]]] = {}
        self._vectors: dict[int, dict[str, Mapping[str, int]]] = {}

    def match(self, host: ActorContext, event_keys: Iterable[str]) -> Operation[dict[str, tuple[Subscription, ...]]]:
        """Returns the listeners of each key, as of versions read after this call."""
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
            return  # Another actor of this node has loaded a newer one meanwhile.
        self._listeners[shard] = _by_event_key(rows, vectors)
        self._vectors[shard] = vectors
        self._versions[shard] = version

    def _load_vectors(
        self, host: ActorContext, shard: int, rows: list[IndexRow]
    ) -> Operation[dict[str, Mapping[str, int]]]:
        """Returns the vectors of these rows. One that is gone was removed with its row, which was read before that."""
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
    """Returns who listens to which event key: one for each leaf of an activation, however many owners wrote of it."""
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
    """Returns the offsets that a vector's item holds, by `<topic id>/<topic partition>`."""
    text = item["offsets"]
    assert isinstance(text, str)
    offsets: dict[str, int] = json.loads(text)
    return offsets


def vector_item(owner: str, offsets: Mapping[str, int]) -> tuple[str, Key, Item]:
    """Returns id, key and item of an end-offset vector: of one activation, so that it can go with it."""
    text = json.dumps(dict(sorted(offsets.items())), separators=(",", ":"))
    vector_id = keys.text_hash_once(owner, text)
    key = keys.offsets_vector(vector_id)
    return vector_id, key, {"pk": key.pk, "sk": key.sk, "offsets": text}
