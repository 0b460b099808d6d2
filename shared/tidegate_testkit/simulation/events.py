"""Producers of events: each data partition once, its announcement sometimes twice, from any topic partition."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from tidegate_core.decisions.inputs import LogRecord
from tidegate_core.effects import NotProduced
from tidegate_testkit.simulation import cluster as world
from tidegate_testkit.simulation.broker import Outgoing
from tidegate_testkit.simulation.cluster import Cluster
from tidegate_testkit.simulation.definitions import NAMESPACE

PATIENCE_MS = 1_500
TWICE = 0.15
TWICE_WITHIN_MS = 8_000


@dataclass(slots=True, eq=False)
class Announced:
    """An event, by its id.

    Attributes:
        appended: Append times of its records; the first record is the one that counts.
    """

    id: str
    dataset: str
    partition: str
    appended: list[int] = field(default_factory=list)


class Producers:
    """All producers of events.

    Attributes:
        announced: By event id; those of programs as well.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.announced: dict[str, Announced] = {}
        self._cluster = cluster

    def plan(self, busy_ms: int) -> None:
        """Plans single partitions of `a`, and partitions that come to both `b` and `c`."""
        timeline = self._cluster.timeline
        for number in range(timeline.chance.randint(14, 30)):
            self._at(timeline.between(200, busy_ms), "a", f"a{number}")
        for number in range(timeline.chance.randint(6, 12)):
            first = timeline.between(200, busy_ms)
            self._at(first, "b", f"day{number}")
            if not timeline.happens(0.1):
                self._at(max(200, first + timeline.between(-6_000, 14_000)), "c", f"day{number}")

    def _at(self, instant: float, dataset: str, partition: str) -> None:
        self._cluster.timeline.after(instant, lambda: self.announce(dataset, partition))

    def announce(self, dataset: str, partition: str) -> None:
        event = {
            "id": f"{dataset}/{partition}",
            "type": "data.partition",
            "namespace": NAMESPACE,
            "dataset": dataset,
            "partition": partition,
        }
        self._send(json.dumps(event).encode())
        timeline = self._cluster.timeline
        if timeline.happens(TWICE):
            self._cluster.trace.counted("event_twice", dataset)
            timeline.after(timeline.between(0, TWICE_WITHIN_MS), lambda: self._send(json.dumps(event).encode()))

    def _send(self, value: bytes) -> None:
        def done(result: object) -> None:
            if isinstance(result, NotProduced):
                self._cluster.timeline.after(300, lambda: self._send(value))

        outgoing = Outgoing(world.EVENTS, None, value, (), None, PATIENCE_MS, lambda: True)
        self._cluster.broker.produce(outgoing, done)

    def event_appended(self, topic_partition: int, record: LogRecord) -> None:
        event = json.loads(record.value or b"{}")
        known = self.announced.setdefault(event["id"], Announced(event["id"], event["dataset"], event["partition"]))
        known.appended.append(record.append_time)
