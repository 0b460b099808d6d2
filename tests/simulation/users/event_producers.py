"""Producers of events: each data partition once, its announcement sometimes twice, from any topic partition."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from tests.simulation.users.schedule_definitions import NAMESPACE
from tests.simulation.world import cluster as world
from tests.simulation.world.broker import Outgoing
from tests.simulation.world.cluster import Cluster
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows.effects import NotProduced

PATIENCE_MS = 1_500
TWICE = 0.15
TWICE_WITHIN_MS = 8_000
BROKEN_MAX = 6
ALONE = 0.25
"""Share of the partitions that come to `b` and never to `c`: whatever waits for both of them waits in vain."""


@dataclass(slots=True, eq=False)
class Announced:
    """An event, by its id.

    Attributes:
        appended: Append times of its records; the first record is the one that counts.
        records: Where they lie.
        by_source: It came through a source, and is an event as long as that is there.
        lost: The topic was made anew after all of them: whoever had not read them by then never will.
        untold_until: Until when brokers may not have told of any topic partition that has one of them; 0 = they have all along.
    """

    id: str
    dataset: str
    partition: str
    appended: list[int] = field(default_factory=list)
    records: list[Position] = field(default_factory=list)
    lost: bool = False
    untold_until: int = 0
    by_source: bool = False


class Producers:
    """All producers of events.

    Attributes:
        announced: By event id; those of programs as well.
        broken: Records sent that are no events.
        broken_at: Where each of them lies that was sent to the events topic, by its value.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.announced: dict[str, Announced] = {}
        self.broken = 0
        self.broken_at: dict[bytes, list[Position]] = {}
        self._cluster = cluster

    def plan(self, busy_ms: int) -> None:
        """Plans single partitions of `a`, and partitions that come to both `b` and `c`."""
        timeline = self._cluster.timeline
        for number in range(timeline.chance.randint(24, 40)):
            self._at(timeline.between(200, busy_ms), "a", f"a{number}")
        for number in range(timeline.chance.randint(8, 13)):
            first = timeline.between(200, busy_ms)
            self._at(first, "b", f"day{number}")
            if not timeline.happens(ALONE):
                self._at(max(200, first + timeline.between(-6_000, 14_000)), "c", f"day{number}")

        for _ in range(timeline.chance.randint(0, BROKEN_MAX)):
            timeline.after(timeline.between(500, busy_ms), self._send_broken)

    def _send_broken(self) -> None:
        self.broken += 1
        self._send(json.dumps({"type": "data.partition", "wrong": self.broken}).encode())

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
        topic_id = self._cluster.broker.topics[world.EVENTS].id
        position = record.position(topic_id, topic_partition, record.append_time)
        if "dataset" not in event:
            self.broken_at.setdefault(record.value or b"", []).append(position)
            return
        known = self.announced.setdefault(event["id"], Announced(event["id"], event["dataset"], event["partition"]))
        untold = self._cluster.broker.untold_until(world.EVENTS, topic_partition)
        known.untold_until = min(known.untold_until, untold) if known.appended else untold
        known.appended.append(record.append_time)
        known.records.append(position)
        known.lost = False

    def are_gone(self, *, by_source: bool) -> None:
        """The events topic is made anew, or that of the source."""
        for announced in self.announced.values():
            announced.lost = announced.lost or announced.by_source == by_source
