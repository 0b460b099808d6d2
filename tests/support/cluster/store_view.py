"""A look at the store's items, to know a moment and to hit it. What it says decides nothing about right or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_core.language.values.derived_ids import message_shard
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows import keys
from tidegate_core.rows.message import MessageName, version_without_key
from tidegate_core.rows.store_operations import Key
from tidegate_core.writes.partition_map import ClusterMap, map_of
from tidegate_ports.store import Store

ID_TRIES_MAX = 10_000
"""One id in eight falls into a given topic partition; that so many miss does not happen."""


@dataclass(frozen=True, slots=True)
class Place:
    """The durable position of a topic partition, and who holds it (a UUID, with what tells its actors apart behind it)."""

    owner: str
    next_offset: int


class StoreView:
    """Items of a running cluster.

    Attributes:
        map: As it was at the last look.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.map: ClusterMap
        self.look_at_the_map()

    def look_at_the_map(self) -> None:
        """Reads which map is in force; it changes only where somebody has the requests topic grow."""
        self.map = map_of(self._store.get([keys.MAP_KEY])[keys.MAP_KEY])

    def shards_of(self, topic_partition: int) -> frozenset[int]:
        return frozenset(range(topic_partition, self.map.shards, self.map.topic_partitions))

    def topic_partition_of(self, namespace: str, key: str | None, message_id: str) -> int:
        """Returns which topic partition's holder owns a message."""
        return message_shard(namespace, key, message_id, self.map.shards) % self.map.topic_partitions

    def held_by(self, owner: str) -> frozenset[int]:
        """Returns the topic partitions whose item names that process."""
        places = {number: self.place(number) for number in range(self.map.topic_partitions)}
        return frozenset(number for number, place in places.items() if place.owner.startswith(owner))

    def place(self, topic_partition: int) -> Place:
        key = self._place_key(topic_partition)
        item = self._store.get([key])[key]
        next_offset = item["next"]
        assert isinstance(next_offset, int)
        return Place(str(item["owner"]), next_offset)

    def ids_for(self, topic_partition: int, namespace: str, prefix: str, count: int) -> list[str]:
        """Returns request ids of messages that the holder of a topic partition owns itself."""
        found: list[str] = []
        for number in range(ID_TRIES_MAX):
            name = f"{prefix}-{number}"
            if self.topic_partition_of(namespace, None, name) == topic_partition:
                found.append(name)
            if len(found) == count:
                return found
        raise AssertionError(f"only {len(found)} ids of {ID_TRIES_MAX} fall into topic partition {topic_partition}")

    def ahead(self, topic_partition: int, namespace: str, request_ids: Sequence[str]) -> list[int]:
        """Returns the offsets of creates whose message row is written while the position has not passed them.

        One read: rows first in the log are written first, and the position moves behind all of its batch.
        """
        rows = [self._message_key(namespace, request_id) for request_id in request_ids]
        place = self._place_key(topic_partition)
        found = self._store.get([*rows, place])
        next_offset = found[place]["next"]
        assert isinstance(next_offset, int)
        offsets = [Position.parse(str(found[row]["origin"])).offset for row in rows if row in found]
        return [offset for offset in offsets if offset >= next_offset]

    def _message_key(self, namespace: str, request_id: str) -> Key:
        shard = message_shard(namespace, None, request_id, self.map.shards)
        version = version_without_key(self.map.topic_id, self.map.history[0].topic_id)
        return keys.message(shard, MessageName.of_request(namespace, request_id).id, version)

    def _place_key(self, topic_partition: int) -> Key:
        return keys.topic_position(self.map.cluster_id, self.map.topic_id, topic_partition)
