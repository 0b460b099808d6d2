"""Lost offsets: topic partitions that are stuck because their log no longer holds the stored position.

Called by `assigned_partitions.py` and `bus_effects.py`. Records after that position were removed before they were read.
Reading on silently would break the promise that nothing is lost, so a person decides (docs/operations.md). Until then
the log, a gauge and /readyz report it. All other topic partitions continue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Unavailable
from tidegate_node.node_identity import NodeFacts
from tidegate_ports.bus import Notices, Topics
from tidegate_telemetry.metrics import Metrics


class LostOffsets:
    """One per process, on its loop."""

    def __init__(self, facts: NodeFacts, topics: Topics, metrics: Metrics, notices: Notices) -> None:
        self._facts = facts
        self._topics = topics
        self._metrics = metrics
        self._notices = notices
        self._gone: dict[tuple[str, int], int] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._topic_ids = {topic.name: topic.id for topic in (facts.requests, facts.events)}
        # Create the series before the first loss, so that an alert finds it.
        for topic in (facts.requests, facts.events):
            metrics.set("tidegate_position_gone", 0, topic=topic.name)

    @property
    def positions(self) -> Mapping[tuple[str, int], int]:
        """The stored position of each (topic, topic partition) that is stuck."""
        return dict(self._gone)

    def reads(self, topic: TopicFacts) -> None:
        """Records which topic has this name from now on: a user may recreate an event source's topic."""
        self._topic_ids[topic.name] = topic.id

    def gone(self, topic: str, topic_partition: int, position: int) -> None:
        """The log does not hold `position`. The topic partition is not read until reading starts again."""
        self._gone[topic, topic_partition] = position
        self._measure(topic)
        task = asyncio.get_running_loop().create_task(self._tell(topic, topic_partition, position))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def over(self, topic: str, topic_partition: int) -> None:
        """Reading was started again, or another node reads now."""
        if self._gone.pop((topic, topic_partition), None) is not None:
            self._measure(topic)

    def _measure(self, topic: str) -> None:
        self._metrics.set("tidegate_position_gone", sum(each == topic for each, _ in self._gone), topic=topic)

    async def _tell(self, topic: str, topic_partition: int, position: int) -> None:
        """Logs what an operator needs to decide. Offsets that the brokers do not report are left out."""
        topic_id = self._topic_ids[topic]
        item = keys.topic_position(self._facts.cluster.cluster_id, topic_id, topic_partition).pk
        where = f"{topic_id}/{topic_partition}"
        begins, ends = await asyncio.gather(self._topics.begin_offsets(topic), self._topics.end_offsets(topic))
        begin = None if isinstance(begins, Unavailable) else begins.offsets.get(where)
        end = None if isinstance(ends, Unavailable) else ends.offsets.get(where)
        if self._gone.get((topic, topic_partition)) != position:
            return  # Reading was started again during the query: only an open dead letter was missing.
        self._notices(
            "reading_stands_still",
            topic=topic,
            topic_partition=topic_partition,
            position=position,
            log_begin=begin,
            log_end=end,
            item=item,
            message=(
                f"topic {topic}, topic partition {topic_partition}: {_lost(position, begin, end)}; nothing of it is read, and "
                f"nothing skipped, until an operator moves `next` of the item {item} (docs/operations.md)"
            ),
        )


def _lost(position: int, begin: int | None, end: int | None) -> str:
    if begin is not None and position < begin:
        return f"the log begins at {begin}, so {begin - position} records from the stored position {position} on were removed unread"
    if end is not None and position > end:
        return f"the log ends at {end}, before the stored position {position}: it was cut"
    return f"the log does not hold the stored position {position}"
