"""Grows the requests topic by an operator's order: first the topic, then the group, then the map.

Each step skips work that is already done. If the command is killed between steps, the topic is larger than its map.
Running nodes repair that (`partition_map_watch.py`), and so does a second run of the command.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from tidegate_core.rows.effects import Committed, Refused, Unavailable
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.rows.store_operations import Item, Key, Transaction
from tidegate_core.writes.partition_map import ClusterMap, MapUnreadable, follow_map, map_of, misfits
from tidegate_node.startup_checks import INITIALISE, BrokerFacts, NotYet, StartRefused, answered
from tidegate_ports.bus import Topic

HELD_LOOKS_MAX: Final = 60
"""Checks, one a second. Members see new topic partitions within `kafka.metadata_age_ms` (30 s). After the last check
the map is written in any case. Shards whose topic partition has no member wait for it.
"""
TOLD_LOOKS_MAX: Final = 60
"""Checks, one a second; brokers usually report new topic partitions within milliseconds."""


class Items(Protocol):
    """Reads and writes the map. Blocking."""

    def items(self, keys: Sequence[Key]) -> Mapping[Key, Item]: ...

    def commit(self, transaction: Transaction) -> Committed | Refused | Unavailable: ...


class NumberRefused(StartRefused):
    """The wanted number is impossible: fewer than now, or more than shards."""


class Growing(Protocol):
    """Adds topic partitions. Blocking; raises NotYet, StartRefused."""

    def grow(self, topic: str, topic_partitions: int) -> None: ...

    def held(self, topic: str) -> frozenset[int] | None: ...


def grow_cluster(
    wanted: int,
    requests: str,
    items: Items,
    growing: Growing,
    brokers: BrokerFacts,
    *,
    say: Callable[[str], None],
    wait: Callable[[], None],
) -> ClusterMap:
    """Grows the cluster to this number of ownership topic partitions, and returns its map.

    Args:
        wanted: Number of topic partitions.
        requests: Name of the requests topic.
        items: The store.
        growing: Topic administration and group state.
        brokers: Queries the topic.
        say: Callback for each step.
        wait: Function that waits for a second.

    Raises:
        NumberRefused: Fewer than now, or more than shards. Nothing was changed.
        StartRefused: The topic belongs to another cluster, or map or topic are missing. Nothing was changed.
        NotYet: The store or a broker does not answer; a second run continues.
    """
    stored = _map(items)
    topic = asyncio.run(_topic(requests, stored, brokers))
    _check(wanted, stored, topic)
    if topic.topic_partitions < wanted:
        say(f"topic {requests} gets {wanted - topic.topic_partitions} topic partitions more")
        growing.grow(requests, wanted)
        _wait_for_brokers(wanted, requests, stored, brokers, wait)
    stored = _wait_for_members(wanted, requests, items, growing, say, wait)
    if stored.topic_partitions >= wanted:
        return stored
    say(f"the map is written: version {stored.version + 1}, {wanted} topic partitions")
    verdict = items.commit(follow_map(stored.grown_to(wanted), f"map/{uuid.uuid4()}"))
    if isinstance(verdict, Unavailable):
        raise NotYet("store: it is not known whether the map was written")
    # Refused: a node, or another command, was quicker.
    stored = _map(items)
    if stored.topic_partitions < wanted:
        raise NotYet(f"another map came first, version {stored.version} of {stored.topic_partitions} topic partitions")
    return stored


def _check(wanted: int, stored: ClusterMap, topic: Topic) -> None:
    present = max(stored.topic_partitions, topic.topic_partitions)
    if wanted < present:
        raise NumberRefused(
            f"topic {topic.name} has {present} topic partitions; there are never fewer, so name {present} or more"
        )
    if wanted > stored.shards:
        raise NumberRefused(
            f"the cluster has {stored.shards} shards, fixed when it was made: more topic partitions would have no shard"
        )


def _map(items: Items) -> ClusterMap:
    item = items.items([MAP_KEY]).get(MAP_KEY)
    if item is None:
        raise StartRefused(f"the cluster's map (item MAP) is not there: {INITIALISE}")
    try:
        return map_of(item)
    except MapUnreadable as unreadable:
        raise StartRefused(str(unreadable)) from unreadable


async def _topic(requests: str, stored: ClusterMap, brokers: BrokerFacts) -> Topic:
    found = answered(await brokers.describe([requests]))
    if requests not in found:
        raise StartRefused(f"topic {requests} does not exist: {INITIALISE}")
    if wrong := misfits(stored, found[requests], answered(await brokers.cluster_id())):
        raise StartRefused("; ".join(wrong))
    if found[requests].id != stored.topic_id:
        raise StartRefused(
            f"topic {requests} was deleted and recreated: wait a minute until the nodes follow it, then run this again"
        )
    return found[requests]


def _wait_for_brokers(
    wanted: int, requests: str, stored: ClusterMap, brokers: BrokerFacts, wait: Callable[[], None]
) -> None:
    for _ in range(TOLD_LOOKS_MAX):
        if asyncio.run(_topic(requests, stored, brokers)).topic_partitions >= wanted:
            return
        wait()
    raise NotYet(f"the brokers do not report {wanted} topic partitions of {requests}; run this again")


def _wait_for_members(
    wanted: int,
    requests: str,
    items: Items,
    growing: Growing,
    say: Callable[[str], None],
    wait: Callable[[], None],
) -> ClusterMap:
    """Waits until members own the new topic partitions: shards of a topic partition without a member would have no
    owner.

    Nodes that get new topic partitions write the map themselves. Without members there is nothing to wait for.
    """
    for look in range(HELD_LOOKS_MAX):
        stored, held = _map(items), growing.held(requests)
        if stored.topic_partitions >= wanted or held is None or held >= frozenset(range(wanted)):
            return stored
        if not look:
            say("waiting until the group has given the new ones to its members")
        wait()
    return _map(items)
