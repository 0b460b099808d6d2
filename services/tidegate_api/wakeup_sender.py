"""Sends wake-ups: a run's item changed, or a request is in the inbox.

A wake-up is best effort: an owner that misses one checks within 10 s anyway. The gate routes and `requests/overtaking.py` call it.
"""

from __future__ import annotations

import asyncio
import json

from tidegate_api.bus_clients import Bus
from tidegate_api.cluster_map import MapReader
from tidegate_api.http.problem_responses import ApiProblem
from tidegate_core.rows.effects import Produce, Produced, Unavailable
from tidegate_core.rows.keys import shard_of_run
from tidegate_ports.store import StoreUnavailable
from tidegate_telemetry.metrics import Metrics

OPEN_MAX = 1_000
"""Most open wake-ups; further ones are dropped. So many are open only if the broker is down; a dropped one costs only latency."""


class WakeUpSender:
    """Sends wake-ups in the background; callers do not wait."""

    def __init__(self, bus: Bus, cluster: MapReader, topic: str, metrics: Metrics) -> None:
        self._bus = bus
        self._cluster = cluster
        self._topic = topic
        self._metrics = metrics
        self._topic_partitions = 0
        self._open: set[asyncio.Task[None]] = set()

    def wake(self, run_id: str) -> None:
        """Tells the owner that a run's item changed. Returns at once."""
        self._wake(shard_of_run(run_id), run_id)

    def wake_for_inbox(self, shard: int) -> None:
        """Tells the owner that a request is in the shard's inbox. Returns at once."""
        self._wake(shard, None)

    def _wake(self, shard: int, run_id: str | None) -> None:
        if len(self._open) >= OPEN_MAX:
            self._metrics.count("tidegate_api_pokes_total", outcome="dropped")
            return
        task = asyncio.create_task(self._send(shard, run_id))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def settle(self) -> None:
        """Waits for open wake-ups; each ends within the publisher's timeout."""
        if self._open:
            await asyncio.wait(self._open)

    async def _send(self, shard: int, run_id: str | None) -> None:
        try:
            sent = await self._produce(shard, run_id)
        except (ApiProblem, StoreUnavailable):
            sent = False
        self._metrics.count("tidegate_api_pokes_total", outcome="sent" if sent else "failed")

    async def _produce(self, shard: int, run_id: str | None) -> bool:
        cluster = await self._cluster.current()
        count = await self._count()
        if count == 0:
            return False
        value = json.dumps({"shard": shard} if run_id is None else {"shard": shard, "run": run_id}).encode()
        where = cluster.topic_partition_of(shard) % count
        answer = await self._bus.publisher.produce(Produce(self._topic, None, value, topic_partition=where))
        return isinstance(answer, Produced)

    async def _count(self) -> int:
        """Returns the number of topic partitions of the wake-up topic. It is read once, because the topic never shrinks."""
        if self._topic_partitions == 0:
            described = await self._bus.topics.describe([self._topic])
            if not isinstance(described, Unavailable) and self._topic in described:
                self._topic_partitions = described[self._topic].topic_partitions
        return self._topic_partitions
