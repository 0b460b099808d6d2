"""The partition map: numbers of shards and ownership topic partitions. It is read from the item `MAP` and cached for 5 s."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_api.http.problem_responses import unavailable
from tidegate_api.thread_pools import Pools
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.writes.partition_map import Cut, history_of, topic_partition_under
from tidegate_ports.clock import Clock
from tidegate_ports.store import Store

MAP_AGE_MS_MAX = 5_000
"""Age in ms after which the map is read again. With an old map a request goes to a former topic partition, whose owner forwards it."""


@dataclass(frozen=True, slots=True)
class ClusterMap:
    """The present partition map.

    Attributes:
        version: Version of the map; each change increments it.
        topic_partitions: Number of ownership topic partitions.
        shards: Number of shards; it never changes after `tidegate init`.
        history: All versions so far; may be empty if no caller needs them.
    """

    version: int
    topic_partitions: int
    shards: int
    history: tuple[Cut, ...] = ()

    def topic_partition_of(self, shard: int, map_version: int | None = None) -> int:
        """Returns the topic partition of a shard under this map, or under an earlier version."""
        known = None if map_version is None else topic_partition_under(self.history, map_version, shard)
        return shard % self.topic_partitions if known is None else known


class MapReader:
    """Reads the map and caches it for `MAP_AGE_MS_MAX`."""

    def __init__(self, store: Store, pools: Pools, clock: Clock) -> None:
        self._store = store
        self._pools = pools
        self._clock = clock
        self._known: ClusterMap | None = None
        self._read_at = 0

    async def current(self) -> ClusterMap:
        """Returns the map.

        Raises:
            ApiProblem: 503, the cluster was never initialised.
            MapUnreadable: Another release wrote the map.
            StoreUnavailable: The store does not answer, and the cached map is too old. The old map would still route requests, but
                no owner could answer them, and `/readyz` reports the store by this error.
        """
        now = self._clock.monotonic_ms()
        if self._known is None or now - self._read_at > MAP_AGE_MS_MAX:
            self._known = await self._pools.read(self._read)
            self._read_at = now
        return self._known

    def _read(self) -> ClusterMap:
        item = self._store.get([MAP_KEY]).get(MAP_KEY)
        if item is None:
            raise unavailable("the cluster has no partition map; run tidegate init")
        version, count, shards = item["version"], item["n"], item["shards"]
        assert isinstance(version, int)
        assert isinstance(count, int)
        assert isinstance(shards, int)
        return ClusterMap(version, count, shards, history_of(item))
