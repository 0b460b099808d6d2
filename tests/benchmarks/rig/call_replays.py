"""What bricks take of the calls that the protocol makes, with nothing else to do: recorded on a bench in memory, sent again.

Reads and writes of the store, records read from a topic and produced to another; no sweeps of an idle node, no decisions, no programs,
no gate over HTTP. One process sends them from several threads. Nothing waits for company on a bench: where a busy node puts more
into a transaction than was recorded, it may be faster than this. What is recorded is in `call_recordings.py`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from confluent_kafka import Consumer, TopicPartition

from tests.benchmarks.rig.bulk_producer import BulkProducer, Outgoing
from tests.benchmarks.rig.call_recordings import Call, Lookup, Recording
from tests.benchmarks.rig.store_bounds import CALLS_AHEAD, THREADS
from tidegate_core.rows.store_operations import Applied, Batch, RangeRead, Transaction
from tidegate_ports.store import Store

RECORDS_AT_ONCE: Final = 500
SILENCE_S_MAX: Final = 30.0


class Beside(Protocol):
    """What goes on while a recording is sent to the store."""

    def prepared(self, recording: Recording) -> Sequence[Callable[[], None]]:
        """Does what is not to be timed, and returns what is: each raises where it comes to nothing."""
        ...

    def close(self) -> None:
        """Called behind the timing."""
        ...


class Logs(Beside):
    """The broker's part of one replay.

    Args:
        bootstrap_servers: Of the broker.
        make_topic: Makes a topic of this name and so many topic partitions.
        topic_partitions: Of the topics of requests and events.
        name: Of what is made, and of nothing else on this broker.
    """

    def __init__(
        self, bootstrap_servers: str, make_topic: Callable[[str, int], str], topic_partitions: int, name: str
    ) -> None:
        self._make_topic = make_topic
        self._topic_partitions = topic_partitions
        self._name = name
        self._producer = BulkProducer(bootstrap_servers, topic_partitions)
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap_servers, "group.id": name, "enable.auto.commit": False, "log_level": 0}
        )

    def prepared(self, recording: Recording) -> Sequence[Callable[[], None]]:
        """Writes what will be read, and reads the first record of it; returns what reads the others, and what produces."""
        parts: list[Callable[[], None]] = []
        if recording.read:
            topic = self._make_topic(f"{self._name}.read", self._topic_partitions)
            self._producer.send(topic, [Outgoing(value, number) for number, value in enumerate(recording.read)])
            self._consumer.assign([TopicPartition(topic, number, 0) for number in range(self._topic_partitions)])
            self._read(1)
            parts.append(lambda: self._read(len(recording.read) - 1))
        if recording.produced:
            to = self._make_topic(f"{self._name}.produced", self._topic_partitions)
            records = [Outgoing(value) for value in recording.produced]
            parts.append(lambda: self._producer.send(to, records))
        return parts

    def close(self) -> None:
        self._consumer.close()

    def _read(self, count: int) -> None:
        for first in range(0, count, RECORDS_AT_ONCE):
            wanted = min(RECORDS_AT_ONCE, count - first)
            records = self._consumer.consume(wanted, SILENCE_S_MAX)
            assert not any(record.error() for record in records), [str(record.error()) for record in records][:3]
            assert len(records) == wanted, f"{first + len(records)} of {count} records, and no more"


def replay_s(store: Store, recording: Recording, logs: Beside | None = None) -> float:
    """Sends a recording from several threads; returns how many seconds its calls took, what was there before not counted.

    Args:
        store: That takes its reads and writes.
        recording: What is sent.
        logs: Its records are read and produced there meanwhile; closed in the end. None leaves them out.
    """
    for first in range(0, len(recording.rows), CALLS_AHEAD):
        assert not store.write(recording.rows[first : first + CALLS_AHEAD]), "the store took not all"
    try:
        parts = () if logs is None else logs.prepared(recording)
        with ThreadPoolExecutor(THREADS) as threads, ThreadPoolExecutor(max(1, len(parts))) as beside:
            begun_s = time.monotonic()
            others = [beside.submit(part) for part in parts]
            for phase in recording.phases:
                _send(store, phase, threads)
            for other in others:
                other.result()
            return time.monotonic() - begun_s
    finally:
        if logs is not None:
            logs.close()


def _send(store: Store, calls: Sequence[Call], threads: ThreadPoolExecutor) -> None:
    """Sends a phase: the calls of one partition key in their order, and reads of single items in any."""
    lines = defaultdict[str, list[Call]](list)
    for number, call in enumerate(calls):
        lines[f"read {number}" if isinstance(call, Lookup) else _partition_key(call)].append(call)

    def send(line: Sequence[Call]) -> None:
        for call in line:
            _send_one(store, call)

    list(threads.map(send, lines.values()))


def _partition_key(call: Transaction | Batch | RangeRead) -> str:
    return call.pk if isinstance(call, RangeRead) else call.actions[0].key.pk


def _send_one(store: Store, call: Call) -> None:
    match call:
        case Lookup(keys):
            store.get(keys)
        case RangeRead():
            store.query(call)
        case Batch(_, actions):
            assert not store.write(actions), "the store took not all"
        case Transaction():
            outcome = store.transact(call)
            assert outcome == Applied(), outcome
