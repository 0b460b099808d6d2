"""The bus port: group membership that delivers records, readers, publishers, and facts about topics and logs.

Two implementations: Kafka (`tidegate_kafka`) and the simulation's broker. Methods of the listeners run on the asyncio loop, in
the order of events. Commands may be given on the loop only, and return at once. Publishers, topics, readers and record finders
pass the suite `tests/conformance/bus_suite.py`. The suite has one test for each rule below and names the rule.

Rules of a publisher:

- B1: A record is read with the key, value and headers with which it was produced; headers keep their order and their repeats.
- B2: The broker times the records of a topic with append times, and within a topic partition times never go back.
- B3: An acknowledged record is in the log, before every record that is handed over later.
- B4: Records of one key lie in one topic partition, as long as the topic does not grow.
- B5: A record with a chosen topic partition lies there, whatever its key.
- B6: A record for an unknown topic or topic partition is `refused`, and other records go on.
- B7: A record that is too large is `refused`. Brokers refuse whole batches, so it and its neighbours may be
  `unavailable` before that.
- B8: `produce_many` settles with one outcome for each record, in the order of the records.

Rules of topics:

- B9: An end offset is the offset of the next record, and 0 for an empty topic partition of a new topic.
- B10: An unknown topic is left out of descriptions. Its end offsets are `Unavailable`, or none where the topic may be missing.
- B11: A topic that grows keeps its id and its records, and a reading of it goes on.
- B12: A recreated topic has another id and no old record, and the position of an old reading is gone.
- B20: A stable end lies before the first record of an open transaction, and equals the end when no transaction is open.

Rules of a reader:

- B13: Every record from the position on comes once, and in the order of offsets.
- B14: A position at the end is not gone: the next record comes.
- B15: A reading from `END` brings only records that were produced after `assign`.
- B16: No record comes after `unassign`, until the next `assign` brings records from its position on.
- B17: A position behind the end is reported as gone, and the next `assign` reads on.
- B18: Readers share nothing: each one gets all records.

Rule of a record finder:

- B19: Marks of transactions have offsets and are no records: no reader gets them, and `next_records` passes over them.

The port does not promise:

- an order of records that are under way at the same time, also within one `produce_many`;
- which topic partition a key has, or that two publishers agree on it;
- that a publisher which knows a topic takes records for a new topic partition of it at once;
- that a record of an `unavailable` outcome is missing: it may be in the log, now or later;
- when brokers report a change of a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from tidegate_core.rows.effects import EndOffsets, Outcome, Produce, Unavailable

END: Literal["end"] = "end"
Position: TypeAlias = int | Literal["end"]
Settled: TypeAlias = Callable[[Sequence[Outcome]], None]
"""Called with the outcomes of records, in the order of the records."""


class Record(NamedTuple):
    """One record of a topic. A named tuple, because creating a frozen dataclass takes three times as long.

    Attributes:
        topic_id: Hex, 32 digits. A recreated topic has another id. A `PartitionReader` may deliver records of the
            recreated topic, with their own id, after a reading that began at an offset.
        append_time_ms: The broker's time for `LogAppendTime` topics (milliseconds since the epoch), else the
            producer's.
        headers: In order, repeats included; a header without a value reads as empty.
        timed_by_broker: Whether the time is the broker's.
    """

    topic: str
    topic_id: str
    topic_partition: int
    offset: int
    append_time_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timed_by_broker: bool = True


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the broker describes it now.

    Attributes:
        name: Name of the topic.
        id: Hex, 32 digits.
        topic_partitions: Number of topic partitions; it only grows.
    """

    name: str
    id: str
    topic_partitions: int


@dataclass(frozen=True, slots=True)
class BeginOffsets:
    """Present begin of logs: earlier records were removed.

    Attributes:
        offsets: First offset that the log still holds, by `<topic id>/<topic partition>` as in `EndOffsets`.
    """

    offsets: Mapping[str, int]


class Drain(Protocol):
    """A revocation that waits until the owner has finished its outstanding work."""

    @property
    def deadline_ms(self) -> int:
        """Instant on `Clock.monotonic_ms` from which the topic partitions are lost, drained or not."""
        ...

    def done(self) -> None:
        """Reports that no work is outstanding. Idempotent; callable from any thread."""
        ...


class MembershipListener(Protocol):
    """Events of a group member. None of them is a fence: only the store fences, by the epoch in its conditions."""

    def assigned(self, topic_partitions: Sequence[int]) -> None:
        """Topic partitions that are new to this member. No records come before `seek_and_resume`."""
        ...

    def revoked(self, topic_partitions: Sequence[int], drain: Drain) -> None:
        """Topic partitions that go to another member after `drain.done()`, at the latest at its deadline. No record
        follows.
        """
        ...

    def lost(self, topic_partitions: Sequence[int]) -> None:
        """Topic partitions that may already have another owner: drop all their work."""
        ...

    def records(self, topic_partition: int, records: Sequence[Record]) -> None:
        """Records in offset order. Acknowledge each by `taken`, or the flow stops."""
        ...

    def position_gone(self, topic_partition: int, offset: int) -> None:
        """The log does not hold `offset` (retention removed it, or the log was truncated). Reading pauses until the
        next seek.
        """
        ...


class Membership(Protocol):
    """This process's membership in the group on `<prefix>.requests`."""

    def seek_and_resume(self, topic_partition: int, offset: int) -> None:
        """Reads from `offset` on. No record that was read before this call is delivered after it."""
        ...

    def stop_reading(self, topic_partition: int) -> None:
        """Delivers no record of the topic partition after this call, until the next `seek_and_resume`."""
        ...

    def taken(self, topic_partition: int, count: int) -> None:
        """Reports that the owner has finished `count` records, which frees their share of the flow's bound."""
        ...

    def commit_hint(self, topic_partition: int, offset: int) -> None:
        """Passes on the next offset to read, for lag tools; the next probe carries it. The authority is the store's
        `TP#` item.
        """
        ...

    def standing(self, ends: Mapping[int, int]) -> Mapping[int, int]:
        """Returns stuck topic partitions with their next offset: behind their end at the last call, and not moved
        since.

        Args:
            ends: End offset of each topic partition, queried now.
        """
        ...

    def restart(self, topic_partition: int, offset: int) -> None:
        """Restarts the reading if it is still at this offset. If that does not help, a later call replaces the
        client.
        """
        ...

    async def prove(self, topic_partition: int) -> bool | None:
        """Probes the membership now, unless the membership lease holds.

        Returns:
            True: member, and the topic partition is assigned. False: it is not. None: unknown in time.
        """
        ...

    def guard_holds(self) -> bool:
        """Whether the membership was proven by a probe sent less than half a session ago. Callable from any thread."""
        ...

    def owned(self) -> frozenset[int]:
        """Returns the assigned topic partitions whose newest assignment has reached the listener. Callable from any
        thread.

        A topic partition that was lost and assigned again may have had another owner in between.
        """
        ...


class ReaderListener(Protocol):
    """The part of `MembershipListener` about records and positions, for topics that the caller chooses."""

    def records(self, topic: str, topic_partition: int, records: Sequence[Record]) -> None: ...

    def position_gone(self, topic: str, topic_partition: int, offset: int) -> None: ...


class PartitionReader(Protocol):
    """Reads topic partitions that the caller chooses: events, wake-ups, receipts, topics of event sources."""

    def assign(self, topic: Topic, topic_partition: int, position: Position) -> None:
        """Starts or restarts reading at the position. `END` is the end when the brokers are asked, soon."""
        ...

    def unassign(self, topic: str, topic_partition: int) -> None:
        """Delivers no record of the topic partition after this call."""
        ...

    def taken(self, topic: str, topic_partition: int, count: int) -> None: ...

    def being_read(self) -> Sequence[Topic]:
        """Returns the topics being read, each once, as known when its reading began."""
        ...

    def standing(self, topic: str, ends: Mapping[int, int]) -> Mapping[int, int]:
        """Returns stuck topic partitions of one topic, as `Membership.standing` does."""
        ...

    def restart(self, topic: str, topic_partition: int, offset: int) -> None:
        """Restarts the reading, as `Membership.restart` does."""
        ...


class Publisher(Protocol):
    """Sends records."""

    async def produce(self, order: Produce) -> Outcome:
        """Sends one record and waits for the brokers' answer. Never raises for an outcome that `NotProduced` can
        express.
        """
        ...

    def produce_many(self, orders: Sequence[Produce], settled: Settled) -> None:
        """Hands records over at once, in this order. Called on the loop.

        Args:
            orders: Records; each gets its own outcome.
            settled: Called on the loop once all outcomes are known; before this call returns if they are known by then.
        """
        ...


class Topics(Protocol):
    """Facts about topics, queried from the brokers at each call."""

    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        """Returns the next offset to be written in each topic partition.

        Args:
            topic: Name of the topic.
            may_be_missing: If True, a missing or unreadable topic has no offsets; otherwise the result is
                `Unavailable`.
        """
        ...

    async def stable_ends(self, topic: str) -> EndOffsets | Unavailable:
        """Returns for each topic partition the offset up to which records can be read.

        That is the first record of the oldest open transaction, or else the end. If an end that was queried first is
        greater than the stable end, a transaction is open.
        """
        ...

    async def begin_offsets(self, topic: str) -> BeginOffsets | Unavailable:
        """Returns the first offset that each topic partition still holds; equal to its end if it is empty."""
        ...

    async def describe(self, names: Sequence[str]) -> Mapping[str, Topic] | Unavailable:
        """Returns those of the named topics that exist."""
        ...


@dataclass(frozen=True, slots=True)
class LogSlice:
    """The records of a topic partition at `begin` <= offset < `end`."""

    topic: str
    topic_partition: int
    begin: int
    end: int


class LogReader(Protocol):
    """Reads slices of logs on request; only a few requests run concurrently."""

    async def spans(self, topic: str, since: int | None = None) -> Mapping[int, LogSlice] | Unavailable:
        """Returns the slice that each topic partition holds now; empty ones are left out.

        Args:
            topic: Name of the topic.
            since: Only records appended at or after this time (milliseconds since the epoch).
        """
        ...

    async def read(
        self, wanted: Sequence[LogSlice], *, records_max: int, bytes_max: int
    ) -> Sequence[Record] | Unavailable:
        """Returns the first records of the slices, one slice after another.

        Args:
            wanted: Slices, in the order of reading.
            records_max: Most records returned.
            bytes_max: Size at which no further record is added.
        """
        ...


class RecordFinder(Protocol):
    """Finds the next record in a log on request; only a few requests run concurrently."""

    async def next_records(
        self, topic: str, topic_id: str, begins: Mapping[int, int]
    ) -> Mapping[int, int] | Unavailable:
        """Returns for each offset the first record at or after it, or else the end of the readable log.

        No record lies in between, now or later: those offsets belong to transaction markers and aborted records.
        Records of an open transaction do not count, and the readable log ends before them.

        Args:
            topic: Name of the topic.
            topic_id: Id of the topic; for another topic of the same name the answer is empty.
            begins: Offset by topic partition. One that the log does not hold is left out of the answer.
        """
        ...

    async def appended_at(self, topic: str, topic_partition: int, offset: int) -> int | None:
        """Returns the append time of the record at this offset, also inside an open transaction; milliseconds since the
        epoch.

        Returns None if there is no record at this offset, or if the brokers do not answer.
        """
        ...


class Notices(Protocol):
    """Receives named events with fields, for logs and metrics, from any thread. `structlog`'s `log.info` fits."""

    def __call__(self, event: str, **fields: object) -> object: ...
