"""Reads slices of logs on request. Implements the ports `LogReader` and `RecordFinder` with a client that lives for one
answer.

A permanent client would hold a connection and a thread for an action that users take a few times a day.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import ParamSpec, Protocol, TypeAlias, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tidegate_core.rows.effects import Unavailable
from tidegate_kafka.admin.topic_metadata import TopicFacts
from tidegate_kafka.clients.client_config import reader_config
from tidegate_kafka.clients.client_log import LOG
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.record_conversion import size_of, to_record
from tidegate_ports.bus import LogSlice, Record

AT_ONCE_MAX = 2
"""Most readings at a time; further callers wait. Each reading has its own queue of records."""
POLL_S = 0.1
FINISHED = KafkaError._PARTITION_EOF  # noqa: SLF001 - the client's own public codes begin so
GONE = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001 - a public code of the client

P = ParamSpec("P")
T = TypeVar("T")


class Client(Protocol):
    """The part of `Consumer` that is used."""

    def assign(self, partitions: list[TopicPartition]) -> None: ...
    def poll(self, timeout: float = -1) -> Message | None: ...
    def close(self) -> None: ...


MakeClient: TypeAlias = Callable[[KafkaSettings], Client]


def make_client(settings: KafkaSettings) -> Client:
    return Consumer({**reader_config(settings), "enable.partition.eof": True, "logger": LOG})


def make_client_of_all(settings: KafkaSettings) -> Client:
    """Returns a client that also reads records of open and aborted transactions."""
    all_records = {"enable.partition.eof": True, "isolation.level": "read_uncommitted", "logger": LOG}
    return Consumer({**reader_config(settings), **all_records})


class KafkaLogReader:
    """Reader of log slices, one per process; call `close` at the end."""

    def __init__(
        self,
        settings: KafkaSettings,
        facts: TopicFacts,
        make: MakeClient = make_client,
        make_of_all: MakeClient = make_client_of_all,
    ) -> None:
        self._settings = settings
        self._facts = facts
        self._make = make
        self._make_of_all = make_of_all
        self._threads = ThreadPoolExecutor(AT_ONCE_MAX, "tidegate-logs")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def spans(self, topic: str, since: int | None = None) -> Mapping[int, LogSlice] | Unavailable:
        """Returns the slice that each topic partition holds now; empty ones are left out."""
        ends = await self._facts.end_offsets(topic)
        begins = await (self._facts.begin_offsets(topic) if since is None else self._facts.offsets_since(topic, since))
        if isinstance(ends, Unavailable):
            return ends
        if isinstance(begins, Unavailable):
            return begins
        numbered = {where: int(where.rpartition("/")[2]) for where in ends.offsets}
        slices = [
            LogSlice(topic, number, begins.offsets.get(where, 0), ends.offsets[where])
            for where, number in numbered.items()
        ]
        return {each.topic_partition: each for each in slices if each.begin < each.end}

    async def read(
        self, wanted: Sequence[LogSlice], *, records_max: int, bytes_max: int
    ) -> Sequence[Record] | Unavailable:
        """Returns the first records of the slices, one slice after another."""
        return await self._apart(self._read, list(wanted), records_max, bytes_max)

    async def next_records(
        self, topic: str, topic_id: str, begins: Mapping[int, int]
    ) -> Mapping[int, int] | Unavailable:
        """Returns for each offset the first record at or after it, or else the end of the readable log."""
        found = await self._apart(self._next_records, topic, dict(begins))
        described = await self._facts.describe(
            [topic]
        )  # After the read, to confirm that it was of the topic that exists now.
        if isinstance(found, Unavailable):
            return found
        if isinstance(described, Unavailable):
            return described
        return found if topic in described and described[topic].id == topic_id else {}

    async def appended_at(self, topic: str, topic_partition: int, offset: int) -> int | None:
        """Returns the append time of the record at this offset, also inside an open transaction; None if unknown."""
        wanted = [LogSlice(topic, topic_partition, offset, offset + 1)]
        found = await self._apart(self._read, wanted, 1, 1, make=self._make_of_all)
        return None if isinstance(found, Unavailable) or not found else found[0].append_time_ms

    async def _apart(self, look: Callable[P, T | Unavailable], *args: P.args, **kwargs: P.kwargs) -> T | Unavailable:
        try:
            looking = asyncio.get_running_loop().run_in_executor(self._threads, partial(look, *args, **kwargs))
        except RuntimeError as none_left:  # The host has no thread left at the moment.
            return Unavailable(f"broker, records: {none_left}")
        return await looking

    def _next_records(self, topic: str, begins: Mapping[int, int]) -> dict[int, int] | Unavailable:
        found: dict[int, int] = {}
        try:
            # Inside the try: creating a client fails while certificates are being replaced, or without a free
            # descriptor.
            with closing(self._make(self._settings)) as client:
                for number, begin in begins.items():
                    client.assign([TopicPartition(topic, number, begin)])
                    message = self._first(client, topic, number)
                    error = message.error()
                    if error is None or error.code() == FINISHED:
                        found[number] = message.offset() or 0
                    elif error.code() != GONE:
                        raise KafkaException(error)
        except (KafkaException, TimeoutError) as failure:
            return Unavailable(f"broker, next records: {failure}")
        return found

    def _first(self, client: Client, topic: str, number: int) -> Message:
        """Returns the first record, or the client's own message instead; raises TimeoutError."""
        patience_s = self._settings.answer_ms_max / 1000
        until = time.monotonic() + patience_s
        while time.monotonic() <= until:
            message = client.poll(POLL_S)
            # Late records of the topic partition before this one are skipped. The client's own messages carry no
            # number.
            if message is not None and message.partition() in (number, None):
                return message
        raise TimeoutError(f"topic {topic}: neither a record nor the end within {patience_s:g} s")

    def _read(
        self, wanted: Sequence[LogSlice], records_max: int, bytes_max: int, *, make: MakeClient | None = None
    ) -> Sequence[Record] | Unavailable:
        found: list[Record] = []
        size = 0
        try:
            with closing((make or self._make)(self._settings)) as client:
                for each in wanted:
                    for record in self._records(client, each):
                        found.append(record)
                        size += size_of(record)
                        if len(found) >= records_max or size >= bytes_max:
                            return found
        except (KafkaException, TimeoutError) as failure:
            return Unavailable(f"broker, records: {failure}")
        return found

    def _records(self, client: Client, wanted: LogSlice) -> Iterator[Record]:
        """Yields the records that exist; raises KafkaException or TimeoutError."""
        client.assign([TopicPartition(wanted.topic, wanted.topic_partition, wanted.begin)])
        patience_s = self._settings.answer_ms_max / 1000
        until = time.monotonic() + patience_s
        while True:
            message = client.poll(POLL_S)
            if message is None:
                if time.monotonic() > until:
                    raise TimeoutError(f"topic {wanted.topic}: no record within {patience_s:g} s")
                continue
            until = time.monotonic() + patience_s
            error = message.error()
            if error is not None and error.code() == FINISHED:
                return
            if error is not None:
                raise KafkaException(error)
            if (message.offset() or 0) >= wanted.end:
                return
            yield to_record(message, "")
            if (message.offset() or 0) >= wanted.end - 1:
                return
