"""How many shards and ownership topic partitions there are: the item `MAP`, read when needed and kept for a while."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_api.http.problem_responses import unavailable
from tidegate_api.thread_pools import Pools
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.writes.partition_map import Cut, history_of, topic_partition_under
from tidegate_ports.clock import Clock
from tidegate_ports.store import Store

MAP_AGE_MS_MAX = 5_000
"""A map that grew is seen after this; until then a request goes to an older topic partition, whose holder hands it on."""


@dataclass(frozen=True, slots=True)
class ClusterMap:
    """The map in force.

    Attributes:
        version: Counts the map's changes.
        topic_partitions: Ownership topic partitions, N.
        shards: S; fixed when the cluster was made.
        history: All versions so far; none where nobody has to know.
    """

    version: int
    topic_partitions: int
    shards: int
    history: tuple[Cut, ...] = ()

    def topic_partition_of(self, shard: int, map_version: int | None = None) -> int:
        """Returns from which one the shard follows, or did under a former map."""
        known = None if map_version is None else topic_partition_under(self.history, map_version, shard)
        return shard % self.topic_partitions if known is None else known


class MapReader:
    """Reads the map; an answer is reused for `MAP_AGE_MS_MAX`."""

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
            MapUnreadable: Another version wrote it.
            StoreUnavailable: The store does not answer, and what is known is older than that. It would do, but no owner could answer what is
                sent by it, and `/readyz` tells by this that the store is away.
        """
        now = self._clock.monotonic_ms()
        if self._known is None or now - self._read_at > MAP_AGE_MS_MAX:
            self._known = await self._pools.read(self._read)
            self._read_at = now
        return self._known

    def _read(self) -> ClusterMap:
        item = self._store.get([MAP_KEY]).get(MAP_KEY)
        if item is None:
            raise unavailable("the cluster has no map yet; run tidegate init")
        version, count, shards = item["version"], item["n"], item["shards"]
        assert isinstance(version, int)
        assert isinstance(count, int)
        assert isinstance(shards, int)
        return ClusterMap(version, count, shards, history_of(item))
