"""Who waits for which receipt. This process reads all of `tidegate.receipts` from the end that it had at the start.

A request's id is registered before the request is produced, so its receipt cannot come too early to be seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pydantic import ValidationError

from tidegate_api.bus import Bus
from tidegate_core.effects import Unavailable
from tidegate_core.model.receipts import Receipt
from tidegate_ports.bus import END, Notices, Record

RETRY_S = 1.0
"""Pause while the broker cannot say where the topic ends."""


class Waiter:
    """One waiting request. Ids are unique within a namespace only.

    Args:
        namespace: The request's.
        thing: The run or job that it names without a namespace: the owner's answer says of which one that is.
    """

    def __init__(self, namespace: str | None, thing: str | None) -> None:
        self._namespace = namespace
        self._thing = thing
        self._answered: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()

    def answer(self, receipt: Receipt) -> None:
        # A request that could not be read may be answered without its namespace.
        is_ours = receipt.namespace in (None, self._namespace) or (
            self._thing is not None and receipt.id == self._thing
        )
        if is_ours and not self._answered.done():
            self._answered.set_result(receipt)

    @property
    def is_waiting(self) -> bool:
        return not self._answered.done()

    def find(self, receipt: Receipt) -> None:
        """Takes what the store says of this very request."""
        if self.is_waiting:
            self._answered.set_result(receipt)

    def fail(self, bug: Exception) -> None:
        if self.is_waiting:
            self._answered.set_exception(bug)

    async def wait(self, seconds: float) -> Receipt | None:
        """Returns the receipt, or None when it has not come in time; may be asked again."""
        done, _ = await asyncio.wait({self._answered}, timeout=seconds)
        return self._answered.result() if done else None


class ReceiptDesk:
    """Implements the port `ReaderListener`. All methods run on the loop."""

    def __init__(self, topic: str, notices: Notices) -> None:
        self._topic = topic
        self._notices = notices
        self._waiting: dict[str, list[Waiter]] = {}
        self._bus: Bus | None = None
        self._begins_again: asyncio.Task[None] | None = None
        self.reads = False
        """Whether the topic is read: before that a receipt could pass unseen."""

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
        topic = described[self._topic]
        for number in range(topic.topic_partitions):
            # An exact offset: "the end" would be found out later, and a receipt of before would be missed.
            bus.reader.assign(topic, number, ends.offsets.get(f"{topic.id}/{number}", END))
        return True

    @contextmanager
    def expecting(self, request_id: str, namespace: str | None, thing: str | None) -> Iterator[Waiter]:
        """Registers a request before it is produced; see `Waiter`."""
        waiter = Waiter(namespace, thing)
        self._waiting.setdefault(request_id, []).append(waiter)
        try:
            yield waiter
        finally:
            left = self._waiting[request_id]
            left.remove(waiter)
            if not left:
                del self._waiting[request_id]

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
            receipt = Receipt.model_validate_json(record.value or b"")
        except ValidationError as error:
            # A newer node's receipt, or a stranger's record: the stored receipt decides.
            self._notices("receipt_not_understood", offset=record.offset, problem=str(error))
            return
        for waiter in waiters:
            waiter.answer(receipt)


async def _paused() -> bool:
    await asyncio.sleep(RETRY_S)
    return False
