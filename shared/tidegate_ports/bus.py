"""The bus as the drivers see it: membership that brings records, a reader of further topics, publishers, where logs begin and end.

Two implementations: Kafka (`tidegate_kafka`) and the simulation's broker. Methods of the listeners run on the asyncio loop, in
the order in which things happened; commands may be given from the loop only and return at once. Publishers, topics, readers and record finders
pass the suite `tests/conformance/bus_suite.py`. The suite has one test for each rule below and names the rule.

Rules of a publisher:

- B1: A record is read with the key, value and headers with which it was produced; headers keep their order and their repeats.
- B2: The broker times the records of a topic with append times, and within a topic partition times never go back.
- B3: An acknowledged record is in the log, before every record that is handed over later.
- B4: Records of one key lie in one topic partition, as long as the topic does not grow.
- B5: A record with a chosen topic partition lies there, whatever its key.
- B6: A record for an unknown topic or topic partition is `refused`, and other records go on.
- B7: A record that is too large is `refused`. Brokers refuse whole batches, so it and its neighbours may be `unavailable` before that.
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
"""Told the outcomes of records, in their order."""


class Record(NamedTuple):
    """One record of a topic. A tuple and not a dataclass: a frozen dataclass costs three times as much to make.

    Attributes:
        topic_id: Hex, 32 digits: a topic that was deleted and made again under its name has another one. `PartitionReader` may
            bring records of such a one, with their own id, where the reading began at an offset.
        append_time_ms: The broker's time for `LogAppendTime` topics (milliseconds since the epoch), else the producer's.
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
    """A topic as the broker knows it now.

    Attributes:
        id: Hex, 32 digits.
        topic_partitions: How many; it only grows.
    """

    name: str
    id: str
    topic_partitions: int


@dataclass(frozen=True, slots=True)
class BeginOffsets:
    """Where logs begin now: what lies before was removed.

    Attributes:
        offsets: First offset that is still there, by `<topic id>/<topic partition>` as in `EndOffsets`.
    """

    offsets: Mapping[str, int]


class Drain(Protocol):
    """A revocation that waits for its owner to finish what is under way."""

    @property
    def deadline_ms(self) -> int:
        """On `Clock.monotonic_ms`: from then on the topic partitions are gone, drained or not."""
        ...

    def done(self) -> None:
        """Nothing is under way any more. Idempotent, any thread."""
        ...


class MembershipListener(Protocol):
    """What a member of the group is told. None of it is a fence: that is the store's (DESIGN 2)."""

    def assigned(self, topic_partitions: Sequence[int]) -> None:
        """They were given to this member (only the new ones); no records come before `seek_and_resume`."""
        ...

    def revoked(self, topic_partitions: Sequence[int], drain: Drain) -> None:
        """They go to another member once `drain.done()` was called, at the latest at its deadline. No record follows."""
        ...

    def lost(self, topic_partitions: Sequence[int]) -> None:
        """They may have another owner already: drop everything."""
        ...

    def records(self, topic_partition: int, records: Sequence[Record]) -> None:
        """Records in offset order. Each is to be acknowledged by `taken`, or the flow stops."""
        ...

    def position_gone(self, topic_partition: int, offset: int) -> None:
        """`offset` is not in the log (retention passed it, or the log was cut): paused until the next seek."""
        ...


class Membership(Protocol):
    """This process's membership in the group on `<prefix>.requests`."""

    def seek_and_resume(self, topic_partition: int, offset: int) -> None:
        """Records flow from `offset` on; nothing that was read before this call is delivered after it."""
        ...

    def stop_reading(self, topic_partition: int) -> None:
        """No record of it is delivered after this call, until the next `seek_and_resume`."""
        ...

    def taken(self, topic_partition: int, count: int) -> None:
        """The owner is done with `count` records: their share of the flow's bound is free again."""
        ...

    def commit_hint(self, topic_partition: int, offset: int) -> None:
        """The next offset to read, for lag tools; rides on the next probe. The truth is the store's `TP#` item."""
        ...

    def standing(self, ends: Mapping[int, int]) -> Mapping[int, int]:
        """Returns those that were behind their end at the last call and have not moved since, each with the offset to be read next.

        Args:
            ends: The next offset to be written in each topic partition, asked now.
        """
        ...

    def restart(self, topic_partition: int, offset: int) -> None:
        """Starts its reading again, unless it has moved on from that offset meanwhile; where that did not help, all of it with another client."""
        ...

    async def prove(self, topic_partition: int) -> bool | None:
        """Probes now, unless the guard holds. True: member, and the topic partition is ours; False: it is not; None: nobody could
        say in time.
        """
        ...

    def guard_holds(self) -> bool:
        """Membership was proven by a probe sent less than half a session ago. Any thread."""
        ...

    def owned(self) -> frozenset[int]:
        """What the client holds now, as far as the listener has heard that it was given: what went and came back unheard had another owner
        meanwhile. Any thread.
        """
        ...


class ReaderListener(Protocol):
    """What `MembershipListener` says of records and positions, for topics chosen by hand."""

    def records(self, topic: str, topic_partition: int, records: Sequence[Record]) -> None: ...

    def position_gone(self, topic: str, topic_partition: int, offset: int) -> None: ...


class PartitionReader(Protocol):
    """Reads topic partitions that were chosen by hand: events, pokes, receipts, users' topics."""

    def assign(self, topic: Topic, topic_partition: int, position: Position) -> None:
        """Starts there, or starts again there. `END` is the end when the brokers are asked, soon."""
        ...

    def unassign(self, topic: str, topic_partition: int) -> None:
        """No record of it is delivered after this call."""
        ...

    def taken(self, topic: str, topic_partition: int, count: int) -> None: ...

    def being_read(self) -> Sequence[Topic]:
        """Returns those that are being read, each once, as it was known when its reading began."""
        ...

    def standing(self, topic: str, ends: Mapping[int, int]) -> Mapping[int, int]:
        """What `Membership.standing` returns, of one topic."""
        ...

    def restart(self, topic: str, topic_partition: int, offset: int) -> None:
        """Starts its reading again, as `Membership.restart` does."""
        ...


class Publisher(Protocol):
    """Sends records."""

    async def produce(self, order: Produce) -> Outcome:
        """Sends one record and waits for the brokers' answer. Never raises for an outcome that `NotProduced` can say."""
        ...

    def produce_many(self, orders: Sequence[Produce], settled: Settled) -> None:
        """Hands records over at once, in this order; from the loop.

        Args:
            orders: Each has a fate of its own.
            settled: Called on the loop once each of them has an outcome; before this returns where that is known by then.
        """
        ...


class Topics(Protocol):
    """Facts about topics, asked of the brokers now."""

    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        """The next offset to be written in each topic partition.

        Args:
            topic: Its name.
            may_be_missing: A topic that is not there, or may not be read, has none; without this it is `Unavailable`.
        """
        ...

    async def stable_ends(self, topic: str) -> EndOffsets | Unavailable:
        """The offset in each topic partition up to which records may be read: the first record of the oldest open transaction, else the end.

        An end that was asked for first and lies behind the stable end shows that a transaction is open.
        """
        ...

    async def begin_offsets(self, topic: str) -> BeginOffsets | Unavailable:
        """The first offset that each topic partition still holds; equal to its end where it is empty."""
        ...

    async def describe(self, names: Sequence[str]) -> Mapping[str, Topic] | Unavailable:
        """Those of the named topics that exist."""
        ...


@dataclass(frozen=True, slots=True)
class LogSlice:
    """The records of a topic partition at `begin` <= offset < `end`."""

    topic: str
    topic_partition: int
    begin: int
    end: int


class LogReader(Protocol):
    """Looks at pieces of logs, once, for somebody who asks; at most a few at the same time."""

    async def spans(self, topic: str, since: int | None = None) -> Mapping[int, LogSlice] | Unavailable:
        """What each topic partition holds now, empty ones left out.

        Args:
            topic: Its name.
            since: Only what was appended then or later (milliseconds since the epoch).
        """
        ...

    async def read(
        self, wanted: Sequence[LogSlice], *, records_max: int, bytes_max: int
    ) -> Sequence[Record] | Unavailable:
        """The first records of the slices, one slice after another.

        Args:
            wanted: In the order in which they are read.
            records_max: No more than so many.
            bytes_max: None is added once they have so many bytes.
        """
        ...


class RecordFinder(Protocol):
    """Looks where the next record of a log lies, for somebody who asks; at most a few at the same time."""

    async def next_records(
        self, topic: str, topic_id: str, begins: Mapping[int, int]
    ) -> Mapping[int, int] | Unavailable:
        """The offset of the first record at or behind each offset, or the end of what may be read where there is none.

        No record lies in between, and none ever will: what has offsets there are marks of transactions, and what was aborted. Records
        of a transaction that is open count as none, and what may be read ends before them.

        Args:
            topic: Its name.
            topic_id: Of the topic that is meant: of another one under its name nothing is told.
            begins: Offset by topic partition. One that the log does not hold is left out of the answer.
        """
        ...

    async def appended_at(self, topic: str, topic_partition: int, offset: int) -> int | None:
        """The append time of the record at this offset, also of an open transaction; milliseconds since the epoch.

        None: no record lies there, or the brokers do not answer.
        """
        ...


class Notices(Protocol):
    """A named event with fields for logs and metrics; any thread. `structlog`'s `log.info` fits."""

    def __call__(self, event: str, **fields: object) -> object: ...
