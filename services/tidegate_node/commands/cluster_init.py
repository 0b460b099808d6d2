"""`tidegate init`: creates tables, topics and the map. It may run concurrently with itself, and changes nothing that
exists.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from tidegate_core.rows.effects import Committed, Refused, Unavailable
from tidegate_core.rows.keys import MAP_KEY, SCHEMA_KEY
from tidegate_core.rows.schema_version import NEWEST, StoreSchema
from tidegate_core.rows.store_operations import Item, Key, Transaction
from tidegate_core.writes.partition_map import ClusterMap, MapUnreadable, map_of, misfits, put_first_map
from tidegate_node.startup_checks import BrokerFacts, Difference, NotYet, StartRefused, TopicNames, answered, described


class Builder(Protocol):
    """Creates and compares the parts of a cluster. Blocking; each method raises NotYet when there is no answer."""

    def tables(self) -> Sequence[Difference]: ...

    def topics(self) -> Sequence[Difference]: ...

    def make_tables(self) -> None: ...

    def make_topics(self) -> None: ...

    def held(self, topic: str) -> frozenset[int] | None:
        """Returns the topic partitions that nodes own now; None if there are no nodes, or the brokers do not report
        them.
        """

    def items(self, keys: Sequence[Key]) -> Mapping[Key, Item]: ...

    def commit(self, transaction: Transaction) -> Committed | Refused | Unavailable: ...


def initialise_cluster(
    shards: int, names: TopicNames, builder: Builder, brokers: BrokerFacts, *, check: bool
) -> list[Difference]:
    """Creates what is missing, or only compares.

    Args:
        shards: Number of shards of a new cluster; an existing map keeps its own.
        names: Names of the topics.
        builder: Creates and compares.
        brokers: Queries the topics.
        check: Changes nothing.

    Returns:
        Differences from the plan; empty when all is right.

    Raises:
        NotYet: The store or a broker does not answer.
        StartRefused: `shards` is impossible, or nodes of other tables read the topics.
    """
    if not check:
        builder.make_tables()
        builder.make_topics()
    found = [*builder.tables(), *builder.topics()]
    if any(difference.unsafe for difference in found):
        return found
    return found + asyncio.run(_map(shards, names, builder, brokers, check=check))


async def _map(
    shards: int, names: TopicNames, builder: Builder, brokers: BrokerFacts, *, check: bool
) -> list[Difference]:
    requests = (await described(names, brokers))[names.requests]
    cluster_id = answered(await brokers.cluster_id())
    items = builder.items([MAP_KEY, SCHEMA_KEY])
    stored = items.get(MAP_KEY)
    if stored is None and check:
        return [Difference("item MAP is absent; it should be made by `tidegate init`", unsafe=True)]
    if stored is None:
        try:
            first = ClusterMap.first(shards, requests, cluster_id)
        except ValueError as wrong:
            raise StartRefused(str(wrong)) from wrong
        if builder.held(requests.name):
            # Without a map they are nodes of another cluster. The group would split the topic partitions between both
            # clusters. Shards of the other half would have no owner, and their requests would reach the wrong tables.
            raise StartRefused(
                f"nodes read topic {requests.name} already, and these tables hold no map: the nodes belong to another cluster. Give this cluster "
                "its topics and group (kafka.topic_prefix, kafka.group), or name the tables of the other one "
                "(dynamodb.table_prefix). If the tables were lost, stop its nodes first"
            )
        # Refused: another process was quicker, and its map is in force.
        if isinstance(builder.commit(put_first_map(first, str(uuid.uuid4()))), Unavailable):
            raise NotYet("store: it is not known whether the map was written")
        items = builder.items([MAP_KEY, SCHEMA_KEY])
        stored = items[MAP_KEY]
    found = list(_schema(StoreSchema.of(items.get(SCHEMA_KEY)), check=check))
    try:
        cluster = map_of(stored)
    except MapUnreadable as unreadable:
        return [*found, Difference(str(unreadable), unsafe=True)]
    unfit = [Difference(sentence, unsafe=True) for sentence in misfits(cluster, requests, cluster_id)]
    if check and not unfit and requests.id != cluster.topic_id:
        text = (
            f"topic {requests.name} is another one than the map's, which is {cluster.topic_id}: it was deleted and made again. "
            "Nodes follow it while they run; what was not read of the old one is gone"
        )
        unfit = [Difference(text, unsafe=False)]
    return [*found, *unfit]


def _schema(schema: StoreSchema, *, check: bool) -> Iterator[Difference]:
    """Yields differences of the version of rows. An older version that this release supports is reported only by
    `check`, so that it does not fail a rollout.
    """
    if (refusal := schema.refusal()) is not None:
        yield Difference(f"item SCHEMA: {refusal}", unsafe=True)
    elif check and min(schema.writes, schema.rows_from) < NEWEST:
        yield Difference(
            f"item SCHEMA: rows are written in version {schema.writes}, some may be of version {schema.rows_from}, and this release has "
            f"version {NEWEST}: run `tidegate migrate --finish` once only nodes of this release are left",
            unsafe=False,
        )
