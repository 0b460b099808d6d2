"""Delivers receipts from the topic to the requests that wait for them.

This process reads the whole topic `tidegate.receipts`, from its end at the start of the process. A request's id is registered before the
request is produced; otherwise its receipt could arrive unnoticed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tidegate_api.bus_clients import Bus
from tidegate_api.requests.receipt_decoding import ReceiptNotUnderstood, receipt_of
from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.rows.effects import Unavailable
from tidegate_ports.bus import END, Notices, Record, Topic

RETRY_S = 1.0
"""Seconds between two attempts to read the end of the topic."""
GROWTH_S = 30.0
"""Seconds between two checks for added topic partitions. Their receipts are read from the first one on, up to this time late.
Until then the poller finds stored receipts in the store, some seconds later."""


class Expected(NamedTuple):
    """A request that waits for its receipt.

    Attributes:
        id: Request id; unique only within its namespace.
        namespace: Namespace of the request.
        name: Name within the namespace, such as a schedule's name or a message's key.
        thing: Run or job id of a request without a namespace; the receipt has the namespace.
    """

    id: str
    namespace: str | None
    name: str | None
    thing: str | None

    def is_answered_by(self, receipt: Receipt) -> bool:
        """Whether a receipt with this id is for this request. Another request may use the same id at the same time."""
        if receipt.namespace == self.namespace:
            return self.name is None or receipt.name in (None, self.name)
        return self.thing is not None and receipt.id == self.thing


class Waiter:
    """One waiting request.

    Args:
        expected: The request.

    Attributes:
        answer_to_be: Future of the receipt, or of an exception.
        answered_at_s: Time of the answer, monotonic clock; None before.
        received_at_s: Time of the answer if it came from the topic, otherwise None.
    """

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self.answer_to_be: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self.answered_at_s: float | None = None
        self.received_at_s: float | None = None

    def answer(self, receipt: Receipt) -> None:
        """Takes a receipt with this id from the topic, if it is for this request."""
        if self.is_waiting and self._expected.is_answered_by(receipt):
            self.find(receipt)
            self.received_at_s = self.answered_at_s

    @property
    def is_waiting(self) -> bool:
        return not self.answer_to_be.done()

    def find(self, receipt: Receipt) -> None:
        """Takes a receipt that is known to be for this request."""
        if self.is_waiting:
            self.answered_at_s = time.monotonic()
            self.answer_to_be.set_result(receipt)

    def fail(self, bug: Exception) -> None:
        if self.is_waiting:
            self.answer_to_be.set_exception(bug)
            self.answer_to_be.exception()  # Retrieved here, because otherwise asyncio logs it if the client has gone.

    @property
    def receipt(self) -> Receipt | None:
        """The receipt; None before the answer. Raises the exception that was passed to `fail`."""
        return self.answer_to_be.result() if self.answer_to_be.done() else None


async def answered(waiters: Sequence[Waiter], seconds: float) -> bool:
    """Waits until each waiter has its answer, or until the timeout. Returns whether all have it. May be called again."""
    open_ones = [waiter.answer_to_be for waiter in waiters if waiter.is_waiting]
    if not open_ones:
        return True
    _, left = await asyncio.wait(open_ones, timeout=seconds)
    return not left


class ReceiptWaiters:
    """Implements the port `ReaderListener`. All methods run on the loop.

    Attributes:
        received_at_s: Time at which a waiter last got an answer from the topic, monotonic clock; None before the first.
    """

    def __init__(self, topic: str, notices: Notices) -> None:
        self._topic = topic
        self._notices = notices
        self._waiting: dict[str, list[Waiter]] = {}
        self._bus: Bus | None = None
        self._begins_again: asyncio.Task[None] | None = None
        self._read: Topic | None = None
        self.received_at_s: float | None = None
        self.reads = False
        """Whether the topic is read; before that a receipt can be missed."""

    @property
    def read(self) -> Topic | None:
        """The last description of the topic that is read; None before the first."""
        return self._read

    async def keep_reading(self, bus: Bus) -> None:
        """Reads the topic, including topic partitions that are added later, until it is cancelled."""
        await self.begin(bus)
        while True:
            await asyncio.sleep(GROWTH_S)
            await self._follow_growth(bus)

    async def begin(self, bus: Bus) -> None:
        """Finds the end of the topic and starts reading there. It retries until this succeeds."""
        self._bus = bus
        while not self.reads:
            self.reads = await self._assign(bus) or await _paused()

    async def _assign(self, bus: Bus) -> bool:
        described = await bus.topics.describe([self._topic])
        if isinstance(described, Unavailable) or self._topic not in described:
            self._notices("receipts_not_readable", topic=self._topic)
            return False
        ends = await bus.topics.end_offsets(self._topic)
        if isinstance(ends, Unavailable):
            return False
        topic = self._read = described[self._topic]
        for number in range(topic.topic_partitions):
            # An exact offset: the consumer would find "the end" later, and an earlier receipt would be missed.
            bus.reader.assign(topic, number, ends.offsets.get(f"{topic.id}/{number}", END))
        return True

    async def _follow_growth(self, bus: Bus) -> None:
        described = await bus.topics.describe([self._topic])
        known = self._read
        if known is None or not self.reads or isinstance(described, Unavailable) or self._topic not in described:
            return
        topic = described[self._topic]
        if topic.id != known.id:
            return  # The topic was recreated: the reader will report lost positions.
        for number in range(known.topic_partitions, topic.topic_partitions):
            bus.reader.assign(topic, number, 0)
        self._read = topic

    @contextmanager
    def expecting(self, requests: Sequence[Expected]) -> Iterator[list[Waiter]]:
        """Registers requests before they are produced. Yields a waiter for each, in their order."""
        waiters = [Waiter(request) for request in requests]
        for request, waiter in zip(requests, waiters, strict=True):
            self._waiting.setdefault(request.id, []).append(waiter)
        try:
            yield waiters
        finally:
            for request, waiter in zip(requests, waiters, strict=True):
                left = self._waiting[request.id]
                left.remove(waiter)
                if not left:
                    del self._waiting[request.id]

    def records(self, topic: str, topic_partition: int, records: Sequence[Record]) -> None:
        for record in records:
            # The key is compared first, so that receipts for other processes are not parsed.
            waiters = self._waiting.get((record.key or b"").decode("utf-8", "replace"))
            if waiters and record.value is not None:
                self._tell(waiters, record)
        assert self._bus is not None
        self._bus.reader.taken(topic, topic_partition, len(records))

    def position_gone(self, topic: str, topic_partition: int, offset: int) -> None:
        """Handles a lost position: retention removed it, or the topic was recreated. Missed receipts are found in the store."""
        self._notices("receipts_position_gone", topic=topic, topic_partition=topic_partition, offset=offset)
        assert self._bus is not None
        if self._begins_again is None or self._begins_again.done():
            self.reads = False
            self._begins_again = asyncio.get_running_loop().create_task(self.begin(self._bus))

    def _tell(self, waiters: Sequence[Waiter], record: Record) -> None:
        try:
            receipt = receipt_of(record.value or b"")
        except ReceiptNotUnderstood as error:
            # The receipt of a newer node, or a foreign record: the stored receipt decides.
            self._notices("receipt_not_understood", offset=record.offset, problem=str(error))
            return
        for waiter in waiters:
            waiter.answer(receipt)
        self.received_at_s = time.monotonic()


async def _paused() -> bool:
    await asyncio.sleep(RETRY_S)
    return False
