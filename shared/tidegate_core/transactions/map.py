"""The item `MAP`: how the cluster is cut. Written once by `tidegate init`, read by every process that starts (DESIGN 3).

It is the only source of N. Whoever finds another number, another topic under the same name, or another cluster of brokers
must not serve: positions and shards would mean something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from tidegate_core.records.codec import to_item
from tidegate_core.records.schema import NEWEST, StoreSchema
from tidegate_core.store.keys import MAP_KEY, SCHEMA_KEY
from tidegate_core.store.values import Item, Put, Transaction, Value
from tidegate_core.transactions import conditions

FIRST_VERSION: Final = 1
SHARDS_MAX: Final = 10_000
"""Keys name a shard with four digits."""


class OwnershipTopic(Protocol):
    """The requests topic as the broker describes it."""

    @property
    def name(self) -> str: ...

    @property
    def id(self) -> str: ...

    @property
    def topic_partitions(self) -> int: ...


class MapUnreadable(ValueError):
    """The stored item is not one that this version of tidegate wrote."""


@dataclass(frozen=True, slots=True)
class ClusterMap:
    """How a cluster is cut.

    Attributes:
        version: Grows by one whenever `topic_partitions` does.
        topic_partitions: N, topic partitions of the ownership topic; 1 to `shards`.
        shards: S, fixed for the life of the cluster.
        topic_id: Of the ownership topic, 32 hex digits: one that was deleted and made again is another.
        cluster_id: Of the brokers.
        history: (version, N) of all maps so far, oldest first.
    """

    version: int
    topic_partitions: int
    shards: int
    topic_id: str
    cluster_id: str
    history: tuple[tuple[int, int], ...]

    @classmethod
    def first(cls, shards: int, requests: OwnershipTopic, cluster_id: str) -> ClusterMap:
        """The map of a new cluster.

        Raises:
            ValueError: There are fewer shards than topic partitions, or more than keys can name.
        """
        count = requests.topic_partitions
        if not count <= shards <= SHARDS_MAX:
            raise ValueError(
                f"shards is {shards}; it must lie between the {count} topic partitions of {requests.name} and {SHARDS_MAX}"
            )
        return cls(FIRST_VERSION, count, shards, requests.id, cluster_id, ((FIRST_VERSION, count),))


def put_first_map(first: ClusterMap, token: str) -> Transaction:
    """Writes the map if there is none, and with it that all rows are of the newest version; of several who try at once, one wins and
    the others read its.
    """
    history: list[Value] = [{"version": version, "n": count} for version, count in first.history]
    item: Item = {
        "pk": MAP_KEY.pk,
        "sk": MAP_KEY.sk,
        "version": first.version,
        "n": first.topic_partitions,
        "shards": first.shards,
        "topic_id": first.topic_id,
        "cluster_id": first.cluster_id,
        "history": history,
        "w": token,
    }
    schema = {**to_item(StoreSchema(writes=NEWEST, rows_from=NEWEST), SCHEMA_KEY), "rev": 1, "w": token}
    return Transaction("map", (Put(MAP_KEY, item, conditions.absent()), Put(SCHEMA_KEY, schema)), token, MAP_KEY)


def map_of(item: Item) -> ClusterMap:
    """Reads the item.

    Raises:
        MapUnreadable: Something is missing or has another type.
    """
    rows = item.get("history")
    history = (
        [(_int(row, "version"), _int(row, "n")) for row in rows if isinstance(row, dict)]
        if isinstance(rows, list)
        else []
    )
    return ClusterMap(
        version=_int(item, "version"),
        topic_partitions=_int(item, "n"),
        shards=_int(item, "shards"),
        topic_id=_text(item, "topic_id"),
        cluster_id=_text(item, "cluster_id"),
        history=tuple(history),
    )


def misfits(stored: ClusterMap, requests: OwnershipTopic, cluster_id: str) -> Sequence[str]:
    """What about the brokers contradicts the map, one sentence each with what to do; empty when all fits."""
    found = []
    if stored.cluster_id != cluster_id:
        found.append(
            f"the map belongs to the Kafka cluster {stored.cluster_id}, and the brokers are {cluster_id}: connect to "
            "those of the map, or use another table prefix for a new cluster"
        )
    if stored.topic_id != requests.id:
        found.append(
            f"topic {requests.name} was deleted and made again since the map was written (its id is {requests.id}, not "
            f"{stored.topic_id}): its stored positions mean nothing; use another table prefix for a new cluster"
        )
    if stored.topic_partitions != requests.topic_partitions:
        found.append(
            f"topic {requests.name} has {requests.topic_partitions} topic partitions and the map says "
            f"{stored.topic_partitions}: growing a running cluster is planned, not here yet"
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
