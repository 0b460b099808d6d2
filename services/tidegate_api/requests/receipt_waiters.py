"""Who waits for which receipt. This process reads all of `tidegate.receipts` from the end that it had at the start.

A request's id is registered before the request is produced, so its receipt cannot come too early to be seen.
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
"""Pause while the broker cannot say where the topic ends."""
GROWTH_S = 30.0
"""Between two looks for topic partitions that were added. Their receipts are read from the first one on, some of them so much late: until
then an answer is found in the store, seconds later, where it is stored at all."""


class Expected(NamedTuple):
    """A request whose answer is waited for.

    Attributes:
        id: Unique within a namespace only.
        namespace: The request's.
        name: What it names there: a schedule, or a message's key say.
        thing: The run or job that it names without a namespace: the owner's answer says of which one that is.
    """

    id: str
    namespace: str | None
    name: str | None
    thing: str | None

    def is_answered_by(self, receipt: Receipt) -> bool:
        """Whether a receipt of this id is this request's: others may take the id at the same time, for something else."""
        if receipt.namespace == self.namespace:
            return self.name is None or receipt.name in (None, self.name)
        return self.thing is not None and receipt.id == self.thing


class Waiter:
    """One waiting request.

    Args:
        expected: What it is about.

    Attributes:
        answer_to_be: Has the answer, or the bug, once it is done.
        answered_at_s: When its answer came, on the monotonic clock; None while it has not.
        heard_at_s: The same, where it came on the topic.
    """

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self.answer_to_be: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self.answered_at_s: float | None = None
        self.heard_at_s: float | None = None

    def answer(self, receipt: Receipt) -> None:
        """Takes a receipt of this id from the topic, if it is this request's."""
        if self.is_waiting and self._expected.is_answered_by(receipt):
            self.find(receipt)
            self.heard_at_s = self.answered_at_s

    @property
    def is_waiting(self) -> bool:
        return not self.answer_to_be.done()

    def find(self, receipt: Receipt) -> None:
        """Takes what is known to be of this very request."""
        if self.is_waiting:
            self.answered_at_s = time.monotonic()
            self.answer_to_be.set_result(receipt)

    def fail(self, bug: Exception) -> None:
        if self.is_waiting:
            self.answer_to_be.set_exception(bug)
            self.answer_to_be.exception()  # Looked at: nobody else does where its client has gone.

    @property
    def receipt(self) -> Receipt | None:
        """What was answered, None while nothing was. Raises the bug that `fail` was told."""
        return self.answer_to_be.result() if self.answer_to_be.done() else None


async def answered(waiters: Sequence[Waiter], seconds: float) -> bool:
    """Waits until each has its answer, for so long at most; returns whether that is so. May be asked again."""
    open_ones = [waiter.answer_to_be for waiter in waiters if waiter.is_waiting]
    if not open_ones:
        return True
    _, left = await asyncio.wait(open_ones, timeout=seconds)
    return not left


class ReceiptWaiters:
    """Implements the port `ReaderListener`. All methods run on the loop.

    Attributes:
        heard_at_s: When somebody here was told an answer from the topic last, on the monotonic clock; None while nobody was.
    """

    def __init__(self, topic: str, notices: Notices) -> None:
        self._topic = topic
        self._notices = notices
        self._waiting: dict[str, list[Waiter]] = {}
        self._bus: Bus | None = None
        self._begins_again: asyncio.Task[None] | None = None
        self._read: Topic | None = None
        self.heard_at_s: float | None = None
        self.reads = False
        """Whether the topic is read: before that a receipt could pass unseen."""

    @property
    def read(self) -> Topic | None:
        """The topic that is read, as it was described last; None before that."""
        return self._read

    async def keep_reading(self, bus: Bus) -> None:
        """Begins, and reads topic partitions that are added as well; ends when it is cancelled."""
        await self.begin(bus)
        while True:
            await asyncio.sleep(GROWTH_S)
            await self._follow_growth(bus)

    async def begin(self, bus: Bus) -> None:
        """Finds the topic's end and reads from there on; tries until it works."""
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
            # An exact offset: "the end" would be found out later, and a receipt of before would be missed.
            bus.reader.assign(topic, number, ends.offsets.get(f"{topic.id}/{number}", END))
        return True

    async def _follow_growth(self, bus: Bus) -> None:
        described = await bus.topics.describe([self._topic])
        known = self._read
        if known is None or not self.reads or isinstance(described, Unavailable) or self._topic not in described:
            return
        topic = described[self._topic]
        if topic.id != known.id:
            return  # Made anew: its reader finds that the positions are gone.
        for number in range(known.topic_partitions, topic.topic_partitions):
            bus.reader.assign(topic, number, 0)
        self._read = topic

    @contextmanager
    def expecting(self, requests: Sequence[Expected]) -> Iterator[list[Waiter]]:
        """Registers requests before they are produced; a waiter for each, in their order."""
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
            # By key first: receipts of other processes' requests are not even parsed.
            waiters = self._waiting.get((record.key or b"").decode("utf-8", "replace"))
            if waiters and record.value is not None:
                self._tell(waiters, record)
        assert self._bus is not None
        self._bus.reader.taken(topic, topic_partition, len(records))

    def position_gone(self, topic: str, topic_partition: int, offset: int) -> None:
        """Retention passed this process, or the topic was made anew: what was in between is found in the store."""
        self._notices("receipts_position_gone", topic=topic, topic_partition=topic_partition, offset=offset)
        assert self._bus is not None
        if self._begins_again is None or self._begins_again.done():
            self.reads = False
            self._begins_again = asyncio.get_running_loop().create_task(self.begin(self._bus))

    def _tell(self, waiters: Sequence[Waiter], record: Record) -> None:
        try:
            receipt = receipt_of(record.value or b"")
        except ReceiptNotUnderstood as error:
            # A newer node's receipt, or a stranger's record: the stored receipt decides.
            self._notices("receipt_not_understood", offset=record.offset, problem=str(error))
            return
        for waiter in waiters:
            waiter.answer(receipt)
        self.heard_at_s = time.monotonic()


async def _paused() -> bool:
    await asyncio.sleep(RETRY_S)
    return False
