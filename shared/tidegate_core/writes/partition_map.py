"""The item `MAP`: the number of topic partitions in each version of the partition map.

`tidegate init` writes the first map; each following one has more topic partitions. The map is the only source of N. A
process that finds fewer topic partitions, or other brokers, must not serve: positions and shards would mean something
else. Every process reads the item repeatedly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.keys import MAP_KEY, SCHEMA_KEY
from tidegate_core.rows.schema_version import NEWEST, StoreSchema
from tidegate_core.rows.store_operations import Item, Put, Transaction, Update, Value
from tidegate_core.writes import conditions

FIRST_VERSION: Final = 1
SHARDS_MAX: Final = 10_000
"""Keys name a shard with four digits."""


class OwnershipTopic(Protocol):
    """The requests topic, as the broker describes it."""

    @property
    def name(self) -> str: ...

    @property
    def id(self) -> str: ...

    @property
    def topic_partitions(self) -> int: ...


class MapUnreadable(ValueError):
    """The stored item was not written by this version of tidegate."""


class Cut(NamedTuple):
    """One version of the map.

    Attributes:
        version: 1 for the first one.
        topic_partitions: N; never below that of an earlier version.
        topic_id: Id of the requests topic at that time.
    """

    version: int
    topic_partitions: int
    topic_id: str


def topic_partition_under(history: Sequence[Cut], version: int, shard: int) -> int | None:
    """Returns the topic partition that owned the shard under a version; None for an unknown version."""
    number = next((cut.topic_partitions for cut in history if cut.version == version), None)
    return None if number is None else shard % number


@dataclass(frozen=True, slots=True)
class ClusterMap:
    """The map in force, with its history.

    Attributes:
        version: Grows by one whenever `topic_partitions` does.
        topic_partitions: N, number of topic partitions of the ownership topic; 1 to `shards`.
        shards: S, fixed for the life of the cluster.
        topic_id: Id of the ownership topic, 32 hex digits; a recreated topic has another one.
        cluster_id: Id of the Kafka cluster.
        history: All versions so far, oldest first; the last one is in force.
    """

    version: int
    topic_partitions: int
    shards: int
    topic_id: str
    cluster_id: str
    history: tuple[Cut, ...]

    @classmethod
    def first(cls, shards: int, requests: OwnershipTopic, cluster_id: str) -> ClusterMap:
        """Returns the map of a new cluster.

        Raises:
            ValueError: There are fewer shards than topic partitions, or more than keys can name.
        """
        count = requests.topic_partitions
        if not count <= shards <= SHARDS_MAX:
            raise ValueError(
                f"shards is {shards}; it must lie between the {count} topic partitions of {requests.name} and {SHARDS_MAX}"
            )
        return cls(FIRST_VERSION, count, shards, requests.id, cluster_id, (Cut(FIRST_VERSION, count, requests.id),))

    @property
    def former(self) -> tuple[Cut, ...]:
        """Versions before this one, oldest first."""
        return tuple(cut for cut in self.history if cut.version < self.version)

    def holder_of(self, shard: int, lease: Item | None = None) -> int:
        """Returns the topic partition that owns a shard; with a lease: the one that owned it when the
        lease was taken.
        """
        version = self.version if lease is None else lease.get("map", FIRST_VERSION)
        assert isinstance(version, int)
        known = topic_partition_under(self.history, version, shard)
        return shard % self.topic_partitions if known is None else known

    def grown_to(self, topic_partitions: int) -> ClusterMap:
        """Returns the map that follows this one.

        More topic partitions than shards are useless. If an operator created them, the map still follows:
        their requests are read and passed on to the shards' owners.

        Raises:
            ValueError: The number is not larger.
        """
        if topic_partitions <= self.topic_partitions:
            raise ValueError(
                f"the map has {self.topic_partitions} topic partitions, and the number never shrinks: name a larger one"
            )
        return self._followed_by(topic_partitions, self.topic_id)

    def on_another_topic(self, topic_id: str, topic_partitions: int) -> ClusterMap:
        """Returns the map that follows this one after the requests topic was deleted and recreated.

        Raises:
            ValueError: The topic is a former one, reported by a broker with old metadata, or it has fewer topic
                partitions.
        """
        if any(cut.topic_id == topic_id for cut in self.history):
            raise ValueError(f"topic {topic_id} is a former requests topic of this cluster")
        if topic_partitions < self.topic_partitions:
            raise ValueError(
                f"the topic has {topic_partitions} topic partitions and the map has {self.topic_partitions}"
            )
        return self._followed_by(topic_partitions, topic_id)

    def _followed_by(self, topic_partitions: int, topic_id: str) -> ClusterMap:
        version = self.version + 1
        history = (*self.history, Cut(version, topic_partitions, topic_id))
        return replace(self, version=version, topic_partitions=topic_partitions, topic_id=topic_id, history=history)


def put_first_map(first: ClusterMap, token: str) -> Transaction:
    """Writes the first map, and states that all rows have the newest version.

    Of concurrent writers one wins; the others read its map.
    """
    item: Item = {
        "pk": MAP_KEY.pk,
        "sk": MAP_KEY.sk,
        "version": first.version,
        "n": first.topic_partitions,
        "shards": first.shards,
        "topic_id": first.topic_id,
        "cluster_id": first.cluster_id,
        "history": _rows(first.history),
        "w": token,
    }
    schema = {**to_item(StoreSchema(writes=NEWEST, rows_from=NEWEST), SCHEMA_KEY), "rev": 1, "w": token}
    return Transaction("map", (Put(MAP_KEY, item, conditions.absent()), Put(SCHEMA_KEY, schema)), token, MAP_KEY)


def follow_map(grown: ClusterMap, token: str) -> Transaction:
    """Writes the map that follows another one. Of concurrent writers one wins; the others read its map.

    Owners read the item repeatedly. None acquires a shard under the new version before all positions of the old
    version carry it (`shard/map_transition.py`).
    """
    update = Update(
        MAP_KEY,
        "SET #version = :version, #n = :n, #topic_id = :topic_id, #history = :history, #w = :w",
        {"#version": "version", "#n": "n", "#topic_id": "topic_id", "#history": "history", "#w": "w"},
        {
            ":version": grown.version,
            ":n": grown.topic_partitions,
            ":topic_id": grown.topic_id,
            ":history": _rows(grown.history),
            ":w": token,
        },
        conditions.map_is(grown.former[-1].version),
    )
    return Transaction("map", (update,), token, MAP_KEY)


def _rows(history: Sequence[Cut]) -> list[Value]:
    return [{"version": cut.version, "n": cut.topic_partitions, "topic_id": cut.topic_id} for cut in history]


def map_of(item: Item) -> ClusterMap:
    """Returns the map in an item.

    Raises:
        MapUnreadable: Something is missing or has another type.
    """
    return ClusterMap(
        version=_int(item, "version"),
        topic_partitions=_int(item, "n"),
        shards=_int(item, "shards"),
        topic_id=_text(item, "topic_id"),
        cluster_id=_text(item, "cluster_id"),
        history=history_of(item),
    )


def history_of(item: Item) -> tuple[Cut, ...]:
    """Returns the versions in an item, oldest first.

    Raises:
        MapUnreadable: One of them has no version or number.
    """
    rows = item.get("history")
    if not isinstance(rows, list):
        return ()
    # Earlier releases stored no topic with a version: it was the present one.
    present = str(item.get("topic_id", ""))
    versions = [row for row in rows if isinstance(row, dict)]
    return tuple(Cut(_int(row, "version"), _int(row, "n"), str(row.get("topic_id", present))) for row in versions)


def misfits(stored: ClusterMap, requests: OwnershipTopic, cluster_id: str) -> Sequence[str]:
    """Returns how the brokers contradict the map, one sentence each with the remedy; empty when they agree."""
    found = []
    if stored.cluster_id != cluster_id:
        found.append(
            f"the map belongs to the Kafka cluster {stored.cluster_id}, and the brokers are {cluster_id}: connect to "
            "those of the map, or use another table prefix for a new cluster"
        )
    if requests.topic_partitions < stored.topic_partitions:
        found.append(
            f"topic {requests.name} has {requests.topic_partitions} topic partitions and the map says "
            f"{stored.topic_partitions}: topics never shrink, so it was deleted and recreated; recreate it with at least as many, "
            "or use another table prefix for a new cluster"
        )
    return found


def _int(item: Item, name: str) -> int:
    value = item.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise MapUnreadable(f"item MAP: {name} is {value!r}, which is no number; was it written by another version?")
    return value


def _text(item: Item, name: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise MapUnreadable(f"item MAP: {name} is {value!r}, which is no text; was it written by another version?")
    return value
