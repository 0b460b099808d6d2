"""The Kafka clients of this process: publisher, topic facts, readers. `bootstrap` builds them; tests use fakes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TypeAlias

from tidegate_core.rows.dead_letter import Queue
from tidegate_core.rows.effects import Outcome, Produce
from tidegate_ports.bus import LogReader, PartitionReader, Publisher, ReaderListener, RecordFinder, Topics


@dataclass(frozen=True, slots=True)
class Bus:
    """Running clients of one cluster."""

    publisher: Publisher
    topics: Topics
    reader: PartitionReader
    log_reader: LogReader
    finder: RecordFinder


async def produced(publisher: Publisher, orders: Sequence[Produce]) -> Sequence[Outcome]:
    """Produces records together. Returns the outcome of each once all outcomes are known."""
    fates: asyncio.Future[Sequence[Outcome]] = asyncio.get_running_loop().create_future()

    def settled(outcomes: Sequence[Outcome]) -> None:
        if not fates.done():  # It is done if the client has closed the connection.
            fates.set_result(outcomes)

    publisher.produce_many(orders, settled)
    return await fates


OpenBus: TypeAlias = Callable[[ReaderListener], AbstractAsyncContextManager[Bus]]
"""Starts the clients on the running loop, with a listener for the reader's records, and stops them."""


@dataclass(frozen=True, slots=True)
class TopicNames:
    """Full names of the topics that this process uses."""

    requests: str
    events: str
    receipts: str
    pokes: str
    runs: str

    @classmethod
    def with_prefix(cls, prefix: str) -> TopicNames:
        return cls(*(f"{prefix}.{name}" for name in ("requests", "events", "receipts", "pokes", "runs")))

    def dead_letters(self, queue: Queue) -> str:
        """Returns the dead-letter topic of a queue."""
        topics = {"requests": self.requests, "events": self.events, "runs": self.runs}
        return f"{topics[queue]}.dlq"
