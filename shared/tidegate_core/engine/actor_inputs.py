"""Inputs of a partition actor in addition to results of effects, and the assignment that it serves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from tidegate_core.language.definitions.quotas import Quotas
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.names import EVERYBODY, TopicNamespaces
from tidegate_core.rows.effects import EffectResult
from tidegate_core.rows.schema_version import NEWEST, THIS_RELEASE, Readable
from tidegate_core.writes.partition_map import Cut, topic_partition_under


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as the brokers described it.

    Attributes:
        id: Topic id, 32 hex digits.
        topic_partitions: Number of topic partitions.
    """

    name: str
    id: str
    topic_partitions: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """The ownership topic partition that a node serves, with the facts about node and cluster.

    It never changes during the assignment.

    Attributes:
        owner: UUID of the process; no two processes share one.
        node: Name of the node, for people.
        topic_partition: Assigned ownership topic partition `p`.
        topic_partitions: N of the partition map.
        map_version: Version of that map.
        former_maps: Earlier maps, oldest first; `shard/map_transition.py` reads the positions of their owners.
        shards: S, fixed for the life of the cluster; shards with `s mod N == p` are owned.
        requests: Requests topic, whose topic partitions decide which node owns which shard, as described at the
            node's start.
        events_topic: Name of the events topic; its id and number of topic partitions are read while the node runs.
        minimum_period_ms: Shortest period of a time trigger (TIDEGATE_MINIMUM_PERIOD_MS, default 10 s).
        quotas: Quotas of namespaces (TIDEGATE_QUOTAS).
        recurring_near_ms: Distance from which a recurring message's next fire is far. A far one is not loaded at
            recovery; its wake row loads it, at two transactions per fire. Longer than the scheduler's window (1 min).
        namespaces: Namespaces that records of the requests and events topics may name.
        writes: Version in which rows were written at the start of the process (`rows/schema_version.py`); it only
            rises.
        readable: Row versions that the process reads.
        tenure: Number of this process's assignment, unique per actor. So no token repeats when a topic partition
            returns to the process.
    """

    owner: str
    node: str
    topic_partition: int
    topic_partitions: int
    map_version: int
    shards: int
    cluster_id: str
    requests: TopicFacts
    events_topic: str
    receipts_topic: str
    runs_topic: str
    requests_dlq_topic: str
    events_dlq_topic: str
    runs_dlq_topic: str
    minimum_period_ms: int = 10_000
    quotas: Quotas = field(default_factory=dict)
    program_files_checked: bool = True
    recurring_near_ms: int = 3_600_000
    namespaces: TopicNamespaces = EVERYBODY
    writes: int = NEWEST
    readable: Readable = THIS_RELEASE
    tenure: int = 0
    former_maps: tuple[Cut, ...] = ()

    @property
    def requests_topics(self) -> tuple[str, ...]:
        """Ids of the cluster's requests topics, oldest first; the last one is in use."""
        return tuple(dict.fromkeys([*(cut.topic_id for cut in self.former_maps), self.requests.id]))

    def owned_shards(self) -> range:
        return range(self.topic_partition, self.shards, self.topic_partitions)

    def topic_partition_under(self, map_version: int, shard: int) -> int | None:
        """Returns the topic partition that owned the shard under a map; None for an unknown map."""
        present = Cut(self.map_version, self.topic_partitions, self.requests.id)
        return topic_partition_under((*self.former_maps, present), map_version, shard)


class LogRecord(NamedTuple):
    """A record with the broker's append time in ms. It is a tuple because 50,000 per second are created here."""

    offset: int
    append_time: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()

    def position(self, topic_id: str, topic_partition: int, append_time: int) -> Position:
        return Position(append_time, topic_id, topic_partition, self.offset)


@dataclass(frozen=True, slots=True)
class Begin:
    """The topic partition was assigned: fence, recover, serve."""


@dataclass(frozen=True, slots=True)
class RecordsArrived:
    """Records of a topic partition, in offset order.

    Attributes:
        topic_id: Id of the records' topic; it differs from the expected one after the topic was recreated.
    """

    topic: str
    topic_partition: int
    records: tuple[LogRecord, ...]
    topic_id: str


@dataclass(frozen=True, slots=True)
class Woken:
    """A wake-up: a row of the shard needs a check. A lost one costs only latency."""

    shard: int
    run_id: str | None = None
    controls: bool = False


@dataclass(frozen=True, slots=True)
class Migrated:
    """Rows are written in this version from now on (`tidegate migrate --finish`).

    A repeated or older input changes nothing.
    """

    writes: int


@dataclass(frozen=True, slots=True)
class Drain:
    """The topic partition is given away in order: finish the present work, then emit `Drained`."""


@dataclass(frozen=True, slots=True)
class OffsetOutOfRange:
    """The log no longer holds the position, because of retention. The reader never skips silently."""

    topic: str
    topic_partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; given at `next_wake` at the latest."""


Input: TypeAlias = Begin | RecordsArrived | Woken | Migrated | Drain | OffsetOutOfRange | Tick | EffectResult

__all__ = [
    "Assignment",
    "Begin",
    "Drain",
    "Input",
    "LogRecord",
    "Migrated",
    "OffsetOutOfRange",
    "RecordsArrived",
    "Tick",
    "TopicFacts",
    "Woken",
]
