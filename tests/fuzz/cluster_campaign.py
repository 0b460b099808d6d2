"""Hostile records against a real broker, DynamoDB Local and real nodes (issue 6, item 5): `make fuzz-cluster` and its smoke in the suite.

Rounds of records go to each topic partition of requests, events and a source's topic, and the next one when the nodes' stored
positions have come near. Once all are passed the dead letters are judged. Behind the last record each topic partition gets a right
one, which has to be carried out; that it was not is told beside what the letters say.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from tests.fuzz.control_schedules import CONTROLS, SOURCE, SOURCE_TOPIC, Controls
from tests.fuzz.dead_letter_check import Judged, judge, letters_of
from tests.fuzz.hostile_records import KINDS, Kind
from tests.fuzz.record_streams import Lane, LaneProducer, stream_of
from tests.support.cluster.cluster import TOPIC_PARTITIONS, Cluster
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.store_view import StoreView
from tests.support.cluster.until import until
from tests.support.cluster.user_client import Client
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.rows import keys
from tidegate_core.writes.fencing import Cursor, cursor_of
from tidegate_kafka.admin.topic_metadata import hex_id
from tidegate_ports.store import StoreUnavailable

ROUND = 250
"""Records of a topic partition that are handed over together."""
AHEAD_MAX = 1_000
"""Of a topic partition, records that the nodes have not passed: a run that is told to end ends soon after."""
STUCK_S = 180.0
"""A topic partition that does not move for so long is stuck; a batch of a busy shard takes a second or two."""
TOPICS: dict[Kind, str] = {"requests": "tidegate.requests", "events": "tidegate.events", "sources": SOURCE_TOPIC}
DEAD = ("tidegate.requests.dlq", "tidegate.events.dlq")
NEVER = ("decision_failed", "dead_letter_refused", "ingest_failed")
"""What no node may say meanwhile."""


@dataclass(slots=True)
class Found:
    """What a run came to."""

    seconds: float = 0.0
    records: Counter[Kind] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)
    not_taken: Counter[str] = field(default_factory=Counter)
    judged: Judged = field(default_factory=Judged)
    fenced: int = 0
    controls: int = 0
    faults: list[str] = field(default_factory=list)

    def line(self) -> str:
        """Returns the figures, as they are published."""
        total = self.records.total()
        kinds = ", ".join(f"{self.records[kind]:,} {kind}" for kind in KINDS)
        ways = ", ".join(f"{count:,} {way}" for way, count in sorted(self.made.items()))
        return (
            f"{total:,} records ({kinds}; {ways}) in {self.seconds:.0f} s, {total / max(self.seconds, 1):.0f} a second: "
            f"{self.judged.letters:,} dead letters, {self.judged.repeats} repeats ({self.fenced} fenced), "
            f"{self.judged.behind.total():,} refused behind the parsers, {self.not_taken.total()} refused by the broker; "
            f"{self.controls} of {CONTROLS} controls carried out; {len(self.faults)} faults"
        )


class Positions:
    """The stored position of any topic partition that nodes read."""

    def __init__(self, cluster: Cluster) -> None:
        self._store = cluster.store
        self._cluster_id = StoreView(cluster.store).map.cluster_id
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        described = admin.describe_topics(TopicCollection(list(TOPICS.values())))
        self._ids = {name: hex_id(future.result().topic_id) for name, future in described.items()}

    def passed(self, lane: Lane) -> int:
        """Returns the offset up to which the nodes are through, with all dead letters acknowledged; 0 where nobody has begun or the
        store is too busy to say.
        """
        key = keys.topic_position(self._cluster_id, self._ids[lane.topic], lane.topic_partition)
        try:
            item = self._store.get([key]).get(key)
        except StoreUnavailable:
            return 0
        return 0 if item is None else passed_by(cursor_of(key, item))


def passed_by(position: Cursor) -> int:
    """Returns where it stands, or the first offset below that whose dead letter is not acknowledged yet."""
    return min([position.next, *position.open])


def fuzz_cluster(
    cluster: Cluster,
    client: Client,
    evidence: Evidence,
    seed: int,
    records: int,
    seconds: float,
    say: Callable[[str], None],
) -> Found:
    """Puts so many records, or as many as the time allows, through a running cluster, and judges what became of them.

    Args:
        cluster: Fresh; its processes are left running.
        client: Of this cluster.
        evidence: For what controls run.
        seed: Of the first topic partition; each further one has the next.
        records: A third for each kind of topic.
        seconds: When no further round begins.
        say: Told how far it is.
    """
    found = Found()
    began = time.monotonic()
    lives = {process.name: (process.pid, process.lives) for process in cluster.processes}
    controls = Controls(cluster, client, evidence)
    lanes = _lanes(seed, evidence.folder)
    positions = Positions(cluster)
    producer = LaneProducer(cluster.bootstrap_servers, SourceSpec.model_validate(SOURCE))
    each = -(-records // len(lanes))
    sent = 0
    while sent < each and time.monotonic() - began < seconds:
        count = min(ROUND, each - sent)
        for lane in lanes:
            producer.produce(lane, count)
        producer.flush()
        sent += count
        _until_passed(positions, lanes, AHEAD_MAX)
        say(f"{sent * len(lanes):,} records in {time.monotonic() - began:.0f} s")
    _until_passed(positions, lanes, 0)
    found.seconds = time.monotonic() - began
    for lane in lanes:
        found.records[lane.kind] += len(lane.records)
        found.made.update(known.made for known in lane.records.values())
        found.not_taken += lane.not_taken
    found.judged = judge(lanes, chain.from_iterable(letters_of(cluster.bootstrap_servers, topic) for topic in DEAD))
    unanswered: list[str] = []
    try:
        found.controls = controls.carried_out()
    except AssertionError as error:
        unanswered.append(f"not all controls were carried out: {error}")
    found.fenced = sum(len(node.events("fenced")) for node in cluster.nodes)
    found.faults = [*found.judged.faults, *unanswered, *_of_the_processes(cluster, lives)]
    if found.judged.repeats and not found.fenced:
        found.faults.append(f"{found.judged.repeats} dead letters repeat, and nothing was fenced")
    return found


def _lanes(seed: int, folder: Path) -> list[Lane]:
    program = folder / "fuzz.py"
    program.write_text("", encoding="utf-8")
    places = [(kind, number) for kind in KINDS for number in range(TOPIC_PARTITIONS)]
    return [
        Lane(kind, TOPICS[kind], number, stream_of(kind, seed + place, str(program)))
        for place, (kind, number) in enumerate(places)
    ]


def _until_passed(positions: Positions, lanes: list[Lane], ahead: int) -> None:
    """Waits until each lane has at most so many records that are not passed; a lane that stands still is stuck."""
    for lane in lanes:
        while (seen := positions.passed(lane)) < lane.end - ahead:
            until(
                lambda lane=lane, seen=seen: positions.passed(lane) > seen,  # type: ignore[misc]
                f"{lane.topic} {lane.topic_partition} moves on from {seen} of {lane.end}",
                STUCK_S,
            )


def _of_the_processes(cluster: Cluster, lives: dict[str, tuple[int, int]]) -> list[str]:
    faults = [
        f"{process.name} ended by itself: {process.last_lines()}"
        for process in cluster.processes
        if not process.running or (process.pid, process.lives) != lives[process.name]
    ]
    for node in cluster.nodes:
        faults += [f"{node.name} says {name}: {each}" for name in NEVER for each in node.events(name)]
    return faults
