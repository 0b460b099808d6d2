"""Kafka's logs: append with the broker's clock, producers whose acknowledgement may be lost, readers that lag."""

from __future__ import annotations

import math
import zlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from tests.simulation.faults.broker_faults import BrokerFaults
from tests.simulation.faults.random_draws import Period, lies_in
from tests.simulation.runner.trace import Trace
from tests.simulation.world.timeline import START, Process, Timeline
from tests.support.harness.scripted_logs import MARK
from tidegate_core.engine.actor_inputs import LogRecord, TopicFacts
from tidegate_core.language.values.derived_ids import shard_of
from tidegate_core.rows.effects import EndOffsets, FindGaps, Gaps, NotProduced, Produced, Unavailable

FETCH_MAX = 40
"""Records of one fetch, so that a backlog comes in several pieces."""
RECORD_BYTES_MAX = 4 * 1024 * 1024
"""As of the product's topics; no user of a world sends so much."""
PRODUCE_MS = 3
RETRY_MS = 200

OnAppend: TypeAlias = Callable[[int, LogRecord], None]


def has_records(log: Sequence[LogRecord], begin: int, end: int) -> bool:
    """Whether one lies at `begin` <= offset < `end`; what the log does not hold may have been one."""
    return end > len(log) or any(each.key != MARK for each in log[begin:end])


@dataclass(slots=True)
class Topic:
    """Attributes:
    id: Hex, 32 digits; another one once it was made anew.
    logs: Per topic partition.
    known: How many topic partitions a broker tells while the news of the last growth spreads, and until when.
    is_of_users: Whoever writes there may do so in transactions.
    """

    name: str
    id: str
    logs: list[list[LogRecord]]
    readers: list[Reader] = field(default_factory=list)
    on_append: OnAppend | None = None
    known: tuple[int, int] = (0, 0)
    is_of_users: bool = False


@dataclass(eq=False)
class Reader:
    """One reading of a topic partition, from `StartReading` to `StopReading`; what is fetched after its end is dropped.

    `gone` is called when the log does not reach as far as the reader has come. `deliver` is told the id of the topic in which the
    records lie, also of those that waited in the node's queue while the reading ended.

    Attributes:
        listens: It has not ended.
        queue_free_at: When the node will have dealt with all that was fetched so far.
        unaware: The topic was made anew and it has not noticed: for a while it fetches nothing, then it goes on at its offset.
    """

    process: Process
    topic: str
    topic_partition: int
    offset: int
    deliver: Callable[[Sequence[LogRecord], str], None]
    gone: Callable[[int], None]
    open: bool = True
    listens: bool = True
    fetching: bool = False
    unaware: bool = False
    queue_free_at: float = 0


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record on its way; `fits` is asked again when it waited for the broker (the client's queue was purged, or is gone)."""

    topic: str
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    topic_partition: int | None
    patience_ms: float
    fits: Callable[[], bool]


class Broker:
    """All topics. One clock: append times never go back."""

    def __init__(
        self,
        timeline: Timeline,
        trace: Trace,
        faults: BrokerFaults,
        metadata_lag_ms: int,
        open_transactions: Sequence[tuple[str, Period]] = (),
    ) -> None:
        self.topics: dict[str, Topic] = {}
        self._timeline = timeline
        self._trace = trace
        self._faults = faults
        self._metadata_lag_ms = metadata_lag_ms
        self._open_transactions = open_transactions
        self._healed = False
        self._healed_at = math.inf

    def create(
        self, name: str, topic_partitions: int, on_append: OnAppend | None = None, *, is_of_users: bool = False
    ) -> Topic:
        topic_id = f"{shard_of('topic', name, shard_count=16**8):08x}" * 4
        logs: list[list[LogRecord]] = [[] for _ in range(topic_partitions)]
        self.topics[name] = Topic(name, topic_id, logs, on_append=on_append, is_of_users=is_of_users)
        return self.topics[name]

    # -- topics -------------------------------------------------------------------------------------------------------

    def described(self, names: Sequence[str]) -> dict[str, TopicFacts]:
        """Returns what a broker tells about those of the topics that exist."""
        found = {name: self.topics[name] for name in names if name in self.topics}
        return {name: TopicFacts(name, topic.id, self._told(topic)) for name, topic in found.items()}

    def grow(self, name: str, more: int) -> None:
        """Somebody adds topic partitions; the news takes its time."""
        topic = self.topics[name]
        topic.known = (len(topic.logs), self._timeline.now + self._metadata_lag_ms)
        topic.logs += [[] for _ in range(more)]
        self._trace.bit("grown", name)

    def untold_until(self, name: str, topic_partition: int) -> int:
        """Returns until when brokers may not tell of it yet; 0 when they do."""
        topic = self.topics[name]
        return 0 if topic_partition < self._told(topic) else topic.known[1]

    def recreate(self, name: str, unaware_ms: Callable[[], float] = lambda: 0) -> None:
        """Somebody deletes a topic and makes it again: the same name, another id, and nothing in it.

        Its readers are told that their position is gone. One that is unaware looks again later only: when by then the new log
        reaches as far as the old one did, it reads on in it, as Kafka's client does.
        """
        topic = self.topics[name]
        topic.id = topic.id[::-1]
        topic.logs = [[] for _ in topic.logs]
        self._trace.bit("recreated", name)
        for reader in topic.readers:
            pause = unaware_ms()
            if pause:
                reader.unaware = True
                self._timeline.after(pause, partial(self._look_again, reader))
            else:
                self._say_gone(reader)

    def _look_again(self, reader: Reader) -> None:
        reader.unaware = False
        if not reader.open:
            return
        if reader.offset > len(self.topics[reader.topic].logs[reader.topic_partition]):
            self._say_gone(reader)
        else:
            self._fetch_soon(reader)

    def _told(self, topic: Topic) -> int:
        number, until = topic.known
        return number if self._timeline.now < until and not self._healed else len(topic.logs)

    def heal(self) -> None:
        self._healed = True
        self._healed_at = self._timeline.now

    def is_down(self) -> bool:
        return not self._healed and lies_in(self._faults.downs, self._timeline.now - START)

    def _is_away(self, topic: str) -> bool:
        """Whether nobody leads the topic, or all brokers are away."""
        if self.is_down() or self._healed:
            return not self._healed
        elapsed = self._timeline.now - START
        return lies_in(self._leaderless(topic), elapsed)

    def _leaderless(self, topic: str) -> tuple[Period, ...]:
        if not self._faults.leaderless or topic not in self.topics:
            return ()
        index = list(self.topics).index(topic)
        return tuple(when for number, when in self._faults.leaderless if number in (index, index - len(self.topics)))

    def away_ms(self, topic: str, begin: int, end: int) -> float:
        """Returns for how long in between nobody led the topic, or all brokers were away, ms."""
        away, seen = 0.0, float(begin)
        for start, over in sorted((*self._faults.downs, *self._leaderless(topic))):
            until = min(START + over, self._healed_at, end)
            away += max(0.0, until - max(seen, START + start))
            seen = max(seen, until)
        return away

    def stable_end(self, topic: str, topic_partition: int) -> int:
        """Returns the offset of the first record that came since a transaction was opened which is open still; else the end."""
        log, now = self.topics[topic].logs[topic_partition], self._timeline.now - START
        opened = [
            begin
            for name, (begin, end) in self._open_transactions
            if name == topic and begin <= now < end and not self._healed
        ]
        return bisect_left(log, START + min(opened), key=lambda each: each.append_time) if opened else len(log)

    def _refuses(self, topic: str) -> bool:
        hit = topic == "sink-b" and not self._healed
        return hit and lies_in(self._faults.refusals, self._timeline.now - START)

    # -- producing ----------------------------------------------------------------------------------------------------

    def produce(self, record: Outgoing, done: Callable[[Produced | NotProduced], None]) -> None:
        """Sends a record; the answer comes once, after the record's patience at the latest."""
        after, faults, happens = self._timeline.after, self._faults, self._timeline.happens
        if self._is_away(record.topic):
            self._trace.bit("broker_down", record.topic)
            if record.patience_ms <= RETRY_MS:
                after(record.patience_ms, lambda: done(NotProduced("unavailable", "the broker did not answer")))
                return
            later = _with_patience(record, record.patience_ms - RETRY_MS)
            after(RETRY_MS, lambda: self._again(later, done))
        elif (problem := self._problem_with(record)) is not None:
            after(self._hop(), lambda: done(NotProduced("refused", problem)))
        elif self._refuses(record.topic):
            self._trace.bit("refused", record.topic)
            after(self._hop(), lambda: done(NotProduced("refused", "not allowed")))
        elif not self._healed and happens(faults.not_appended):
            self._trace.bit("not_appended", record.topic)
            after(record.patience_ms, lambda: done(NotProduced("unavailable", "no acknowledgement")))
        else:
            arrives = self._hop()
            places: list[Produced] = []
            after(arrives, lambda: places.append(self._append(record)))
            if not self._healed and happens(faults.lost_ack):
                self._trace.bit("lost_ack", record.topic)
                after(record.patience_ms, lambda: done(NotProduced("unavailable", "no acknowledgement")))
            else:
                # An acknowledged record is in the log, so the acknowledgement leaves after the append.
                after(max(arrives, self._hop()) + self._hop(), lambda: done(places[0]))

    def _problem_with(self, record: Outgoing) -> str | None:
        """Returns why no broker will ever take the record, or None."""
        topic, number = self.topics.get(record.topic), record.topic_partition
        if topic is None:
            return f"{record.topic} does not exist"
        if number is not None and number >= len(topic.logs):
            return f"{record.topic} has no topic partition {number}"
        return "the record is too large" if len(record.value) > RECORD_BYTES_MAX else None

    def _again(self, record: Outgoing, done: Callable[[Produced | NotProduced], None]) -> None:
        if record.fits():
            self.produce(record, done)
        else:
            done(NotProduced("unavailable", "purged"))

    def _append(self, record: Outgoing) -> Produced:
        topic = self.topics[record.topic]
        number = record.topic_partition
        if number is None:
            number = self._timeline.chance.randrange(len(topic.logs))
            if record.key is not None:
                number = zlib.crc32(record.key) % len(topic.logs)
        log = topic.logs[number]
        appended = LogRecord(len(log), self._timeline.now, record.key, record.value, record.headers)
        log.append(appended)
        said = record.value.decode() if record.topic.startswith("sink") else ""
        self._trace.note("broker", "append", record.topic, number, appended.offset, said)
        if topic.on_append is not None:
            topic.on_append(number, appended)
        if topic.is_of_users and not self._healed and self._timeline.happens(self._faults.marks):
            self._trace.bit("marked", record.topic)
            log.append(LogRecord(len(log), self._timeline.now, MARK, None))
        for reader in topic.readers:
            if reader.topic_partition == number:
                self._fetch_soon(reader)
        return Produced(appended.append_time, number, appended.offset)

    def _hop(self) -> float:
        return self._timeline.around(PRODUCE_MS)

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, reader: Reader, topic_id: str) -> None:
        """Begins a reading of the topic that the reader knows by this id. A reader of another topic, or behind the end, is told so."""
        topic = self.topics[reader.topic]
        topic.readers.append(reader)
        if topic_id == topic.id and reader.offset <= len(topic.logs[reader.topic_partition]):
            self._fetch_soon(reader)
        else:
            self._say_gone(reader)

    def stop(self, reader: Reader) -> None:
        reader.open = reader.listens = False
        self.topics[reader.topic].readers.remove(reader)

    def end_offsets(
        self, topic: str, done: Callable[[EndOffsets | Unavailable], None], *, may_be_missing: bool = False
    ) -> None:
        def look() -> None:
            if self._is_away(topic):
                self._timeline.after(500, lambda: done(Unavailable(f"broker, end offsets of {topic}")))
                return
            if topic not in self.topics:
                missing = EndOffsets({}) if may_be_missing else Unavailable(f"broker, {topic} does not exist")
                self._timeline.after(self._hop(), lambda: done(missing))
                return
            found = self.topics[topic]
            told = enumerate(found.logs[: self._told(found)])
            ends = EndOffsets({f"{found.id}/{number}": len(log) for number, log in told})
            self._timeline.after(self._hop(), lambda: done(ends))

        self._timeline.after(self._hop(), look)

    def find_gaps(self, wanted: FindGaps, done: Callable[[Gaps | Unavailable], None]) -> None:
        def look() -> None:
            if self._is_away(wanted.topic):
                self._timeline.after(500, lambda: done(Unavailable(f"broker, records of {wanted.topic}")))
                return
            topic = self.topics[wanted.topic]
            spans = wanted.spans.items() if topic.id == wanted.topic_id else ()
            # What follows the first record of an open transaction may still be records.
            known = [(number, span) for number, span in spans if span[1] <= self._readable(wanted.topic, number)]
            gaps = Gaps(frozenset(number for number, span in known if not has_records(topic.logs[number], *span)))
            self._timeline.after(self._hop(), lambda: done(gaps))

        self._timeline.after(self._hop(), look)

    def _readable(self, topic: str, topic_partition: int) -> int:
        known = topic_partition < len(self.topics[topic].logs)
        return self.stable_end(topic, topic_partition) if known else 0

    def _fetch_soon(self, reader: Reader) -> None:
        if not (reader.fetching or reader.unaware) and reader.offset < len(
            self.topics[reader.topic].logs[reader.topic_partition]
        ):
            reader.fetching = True
            self._timeline.after(self._timeline.around(self._faults.fetch_ms), lambda: self._fetch(reader))

    def _say_gone(self, reader: Reader) -> None:
        """The log that it reads is not there any more: it is told so, and reads no further."""

        def arrive() -> None:
            if reader.listens:
                reader.gone(reader.offset)

        reader.open = False
        reader.process.post(arrive)

    def _fetch(self, reader: Reader) -> None:
        reader.fetching = False
        if not reader.open or not reader.process.alive or reader.unaware:
            return
        if self._is_away(reader.topic):
            reader.fetching = True
            self._timeline.after(500, lambda: self._fetch(reader))
            return
        topic_id, log = self.topics[reader.topic].id, self.topics[reader.topic].logs[reader.topic_partition]
        end = self.stable_end(reader.topic, reader.topic_partition)
        if reader.offset >= end and end < len(log):
            self._trace.bit("open_transaction", reader.topic)
            reader.fetching = True
            self._timeline.after(500, lambda: self._fetch(reader))
            return
        found = log[reader.offset : min(end, reader.offset + FETCH_MAX)]
        reader.offset += len(found)
        records = [each for each in found if each.key != MARK]

        def arrive() -> None:
            if reader.open or not reader.listens:
                reader.deliver(records, topic_id)

        if records:
            self._queue(reader, arrive)
        self._fetch_soon(reader)

    def _queue(self, reader: Reader, arrive: Callable[[], None]) -> None:
        """A busy node deals with what was fetched later, behind all that was fetched before it."""
        now, mean = self._timeline.now, self._faults.queue_ms
        wait = self._timeline.around(mean) if mean and not self._healed else 0
        reader.queue_free_at = max(now, reader.queue_free_at) + wait
        if reader.queue_free_at > now:
            reader.process.after(reader.queue_free_at - now, arrive)
        else:
            reader.process.post(arrive)


def _with_patience(record: Outgoing, patience_ms: float) -> Outgoing:
    return Outgoing(
        record.topic, record.key, record.value, record.headers, record.topic_partition, patience_ms, record.fits
    )
