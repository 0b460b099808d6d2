"""Topics as they are read: their ends, and who reads which from where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadEndOffsets:
    """End offsets of all topic partitions of a topic, asked now. Answer: `EndOffsets` or `Unavailable`.

    Attributes:
        may_be_missing: A topic that is not there, or that the node may not read, is told as one without topic partitions.
    """

    topic: str
    may_be_missing: bool = False


@dataclass(frozen=True, slots=True)
class EndOffsets:
    """`<topic id>/<topic partition>` to the next offset to be written there."""

    offsets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FindGaps:
    """Which of these spans of offsets hold no record, and never will: marks of transactions, and what was aborted. Answer: `Gaps`
    or `Unavailable`.

    Attributes:
        topic_id: Of the topic that is meant: one that was made anew under its name is another one.
        spans: First offset, and the one behind the last, by topic partition.
    """

    topic: str
    topic_id: str
    spans: Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Gaps:
    """Topic partitions whose span surely holds no record."""

    topic_partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class StartReading:
    """Deliver the records of a topic partition from `offset` on (None = from its beginning) as `RecordsArrived`. No answer.

    Attributes:
        topic_id: Of the topic that is meant: one that was made anew under its name is another one.
        topic_partitions: Their number, as far as the reader knows.
    """

    topic: str
    topic_partition: int
    offset: int | None
    topic_id: str
    topic_partitions: int


@dataclass(frozen=True, slots=True)
class StopReading:
    """No further record of it is wanted. No answer."""

    topic: str
    topic_partition: int


@dataclass(frozen=True, slots=True)
class ReturnCredits:
    """`count` delivered records were dealt with: their credits go back to the reader. `next_offset` is the durable
    position; that of the requests topic is committed as a hint for lag tools.
    """

    topic: str
    topic_partition: int
    count: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Drained:
    """Nothing of this topic partition is in flight any more; it may be given away. No answer."""

    topic_partition: int
