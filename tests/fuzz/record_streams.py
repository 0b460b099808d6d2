"""Hostile records on their way to the topic partitions of a real broker, each with what is known of it in advance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from confluent_kafka import KafkaError, Message, Producer

from tests.fuzz.hostile_records import Hostile, HostileRecords, Kind
from tests.fuzz.parser_verdict import refusal_of
from tests.support.cluster.until import PATIENCE_S
from tests.support.cluster.user_client import RECORD_BYTES_MAX
from tidegate_core.language.events.event_source import SourceSpec

BULKY_BYTES = 100_000
BULKY_ONE_IN = 100
"""Of records of 0.1 to 4 MB: a million records with all of them were 25 GB, and as much again as dead letters."""
PROGRAM = b"/jobs/fuzz.py"
"""What hostile schedules run: a file that is there takes its place, else the owner refuses each of them for that alone."""
DIGEST_BYTES = 12


@dataclass(frozen=True, slots=True)
class Known:
    """A record as it lies in its topic partition.

    Attributes:
        digest: Of key, value and headers.
        made: How it was made.
        must_die: It has to be a dead letter: nobody can read it, by the way it was made, or the parsers refuse it.
        is_right: It must not be one.
    """

    digest: bytes
    made: str
    must_die: bool
    is_right: bool


@dataclass(slots=True)
class Lane:
    """One topic partition, and the stream of what is produced there.

    Attributes:
        stream: Of the lane's own seed.
        records: By offset, as the broker acknowledged them.
        begin, end: Offset of the first, and behind the last one; 0 where there is none.
        not_taken: Errors of those that the broker refused itself, by name.
    """

    kind: Kind
    topic: str
    topic_partition: int
    stream: Iterator[Hostile]
    records: dict[int, Known] = field(default_factory=dict)
    begin: int = 0
    end: int = 0
    not_taken: Counter[str] = field(default_factory=Counter)

    def taken(self, known: Known, error: KafkaError | None, message: Message) -> None:
        """Called when the broker has answered."""
        offset = message.offset()
        if error is not None or offset is None:
            self.not_taken[str(error)] += 1
        else:
            self.begin = min(self.begin, offset) if self.records else offset
            self.end = max(self.end, offset + 1)
            self.records[offset] = known


def stream_of(kind: Kind, seed: int, program: str) -> Iterator[Hostile]:
    """Yields a seed's records: of bulky ones every hundredth, and with a program that is there."""
    records = HostileRecords(kind, seed)
    bulky = 0
    while True:
        record = records.next()
        if _size(record) > BULKY_BYTES:
            bulky += 1
            if bulky % BULKY_ONE_IN != 1:
                continue
        value = None if record.value is None else record.value.replace(PROGRAM, program.encode())
        # The client library takes header names for C's texts.
        headers = tuple((name.replace("\0", ""), text) for name, text in record.headers)
        yield Hostile(record.made, record.key, value, headers, record.is_no_record)


class LaneProducer:
    """Produces to lanes, in their order, without a record twice.

    Args:
        bootstrap_servers: Of the broker.
        source: By which records of a source's topic are judged.
    """

    def __init__(self, bootstrap_servers: str, source: SourceSpec) -> None:
        self._source = source
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 20,
                "message.max.bytes": RECORD_BYTES_MAX,
                "queue.buffering.max.messages": 1_000_000,
                "log_level": 0,
            }
        )

    def produce(self, lane: Lane, count: int) -> None:
        """Hands the next `count` records of a lane to the client."""
        for _ in range(count):
            record = next(lane.stream)
            known = self._known(lane.kind, record)
            self._producer.produce(
                lane.topic,
                record.value,
                record.key,
                partition=lane.topic_partition,
                headers=list(record.headers),
                on_delivery=partial(lane.taken, known),
            )
            self._producer.poll(0)

    def flush(self) -> None:
        """Waits until the broker has answered for each."""
        assert self._producer.flush(PATIENCE_S) == 0, "the broker did not answer for all records"

    def _known(self, kind: Kind, record: Hostile) -> Known:
        refused = record.is_no_record or refusal_of(kind, record, self._source) is not None
        digest = digest_of(record.key, record.value or b"", record.headers)
        return Known(digest, record.made, refused, record.made == "untouched")


def digest_of(key: bytes | None, value: bytes, headers: tuple[tuple[str, bytes], ...]) -> bytes:
    """Returns what tells two records apart; of headers, order and repeats count."""
    return blake2b(repr((key, value, headers)).encode(), digest_size=DIGEST_BYTES).digest()


def _size(record: Hostile) -> int:
    return len(record.key or b"") + len(record.value or b"") + sum(len(value) for _, value in record.headers)
