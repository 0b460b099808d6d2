"""What happens to a partition actor, besides the answers to what it asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from tidegate_core.language.definitions.quotas import Quotas
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.topic_namespaces import EVERYBODY, TopicNamespaces
from tidegate_core.rows.effects import EffectResult
from tidegate_core.rows.schema_version import NEWEST, THIS_RELEASE, Readable
from tidegate_core.writes.partition_map import Cut, topic_partition_under


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as the brokers described it.

    Attributes:
        id: Hex, 32 digits.
        topic_partitions: Their number.
    """

    name: str
    id: str
    topic_partitions: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a holder of an ownership topic partition knows about itself and the cluster; never changes under it.

    Attributes:
        owner: UUID of the process: two processes never share one (protocol H18).
        node: Name for people.
        topic_partition: The ownership topic partition `p` that is held.
        topic_partitions: N of the MAP.
        map_version: Version of that MAP.
        former_maps: The maps before it, oldest first: what their holders were dealing with is carried over (`former_maps`).
        shards: S, fixed for the life of the cluster; shards `s mod N == p` are owned.
        requests: The topic whose topic partitions decide who owns which shard, as described when the node started.
        events_topic: Name of the events topic: its id and number are asked of the brokers while it is read (`events_watch`).
        minimum_period_ms: Shortest period of a time trigger (TIDEGATE_MINIMUM_PERIOD_MS, default 10 s).
        quotas: What namespaces may ask for (TIDEGATE_QUOTAS).
        recurring_near_ms: A recurring message whose next fire is further ahead is not read at a recovery, but brought near in its
            time by a row of its own: two transactions for each such fire. Longer than the window of the messages (1 min).
        namespaces: Which namespaces the records of the requests and of the events topic may name.
        writes: Version in which rows were written when the process started (`rows/schema_version.py`); it only rises.
        readable: What the process can read.
        tenure: Counts the holdings that this process has had; another one for each actor, so that no token ever repeats
            when a topic partition comes back to the process.
        topics: Names of `receipts`, `runs`, `requests_dlq`, `events_dlq`, `runs_dlq`.
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
        """Ids of the requests topics that the cluster has had, oldest first; the last one is read."""
        return tuple(dict.fromkeys([*(cut.topic_id for cut in self.former_maps), self.requests.id]))

    def owned_shards(self) -> range:
        return range(self.topic_partition, self.shards, self.topic_partitions)

    def topic_partition_under(self, map_version: int, shard: int) -> int | None:
        """Returns from which topic partition the shard followed under that map; None for a map that is not known here."""
        present = Cut(self.map_version, self.topic_partitions, self.requests.id)
        return topic_partition_under((*self.former_maps, present), map_version, shard)


class LogRecord(NamedTuple):
    """A record as read, with the broker's append time in milliseconds. A tuple: each of 50,000 a second is made here once more."""

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
    """Records of a topic partition that is being read, in offset order.

    Attributes:
        topic_id: Of the topic that they lie in: another one than is being read when that was made anew under its name.
    """

    topic: str
    topic_partition: int
    records: tuple[LogRecord, ...]
    topic_id: str


@dataclass(frozen=True, slots=True)
class Woken:
    """Somebody says that there is something for the shard; a lost poke costs latency only."""

    shard: int
    run_id: str | None = None
    controls: bool = False


@dataclass(frozen=True, slots=True)
class Migrated:
    """Rows are written in this version by now (`tidegate migrate --finish`); repeats and older ones change nothing."""

    writes: int


@dataclass(frozen=True, slots=True)
class Drain:
    """The topic partition is being given away in an orderly manner: finish what is under way, then say `Drained`."""


@dataclass(frozen=True, slots=True)
class OffsetOutOfRange:
    """The log no longer holds the position (retention overtook it): never a silent jump."""

    topic: str
    topic_partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; given at the latest at `next_wake`."""


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
