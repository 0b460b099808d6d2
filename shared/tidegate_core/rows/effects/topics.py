"""Effects on topics: end offsets, gaps, and the control of readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadEndOffsets:
    """Reads the end offsets of all topic partitions of a topic now. Result: `EndOffsets` or `Unavailable`.

    Attributes:
        may_be_missing: True when a missing or unreadable topic counts as one without topic partitions.
    """

    topic: str
    may_be_missing: bool = False


@dataclass(frozen=True, slots=True)
class EndOffsets:
    """End offsets: `<topic id>/<topic partition>` to the offset of the next record there."""

    offsets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FindGaps:
    """Asks which spans of offsets hold no record and never will: transaction markers and aborted records. Result: `Gaps`
    or `Unavailable`.

    Attributes:
        topic_id: Id of the topic. A topic that was recreated under the name has another id.
        spans: First offset and the offset after the last, by topic partition.
    """

    topic: str
    topic_id: str
    spans: Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Gaps:
    """Topic partitions whose span certainly holds no record."""

    topic_partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class StartReading:
    """Delivers a topic partition's records from `offset` (None = from its start) as `RecordsArrived`. No result.

    Attributes:
        topic_id: Id of the topic. A topic that was recreated under the name has another id.
        topic_partitions: Number of topic partitions, as the reader knows it.
    """

    topic: str
    topic_partition: int
    offset: int | None
    topic_id: str
    topic_partitions: int


@dataclass(frozen=True, slots=True)
class StopReading:
    """Stops the delivery of a topic partition's records. No result."""

    topic: str
    topic_partition: int


@dataclass(frozen=True, slots=True)
class ReturnCredits:
    """Returns the credits of `count` processed records to the reader.

    `next_offset` is the durable position. For the requests topic it is also committed to the group, as a hint for lag
    tools.
    """

    topic: str
    topic_partition: int
    count: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Drained:
    """Nothing of this topic partition is in flight any more, so the node may give it away. No result."""

    topic_partition: int
