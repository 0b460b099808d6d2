"""Reads topic partitions that were chosen by hand: events and pokes for a node, receipts for an API process.

Implements the port `PartitionReader`, on a thread of its own. It is no member of any group, so nobody takes anything
from it: after a failed client the new one goes on where the loop's orders and the flows stood.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from confluent_kafka import Consumer

from tidegate_kafka.client_config import reader_config
from tidegate_kafka.client_thread import ClientThread
from tidegate_kafka.lanes import Client, Lanes, PositionGone, Read
from tidegate_kafka.membership import CLOSE_MS_MAX, LOG
from tidegate_kafka.orders import Orders, Where
from tidegate_kafka.post import post_to
from tidegate_kafka.reader_hints import ReaderHints
from tidegate_kafka.reading import read_batch
from tidegate_kafka.settings import KafkaSettings
from tidegate_ports.bus import Notices, Position, ReaderListener, Record, Topic
from tidegate_ports.clock import Clock

MakeReader: TypeAlias = Callable[[KafkaSettings], Client]


def make_reader(settings: KafkaSettings) -> Client:
    return Consumer({**reader_config(settings), "logger": LOG})


class KafkaPartitionReader:
    """One consumer with manual assign; may be started and stopped again and again."""

    def __init__(
        self,
        settings: KafkaSettings,
        listener: ReaderListener,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        notices: Notices,
        make: MakeReader = make_reader,
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._clock = clock
        self._notices = notices
        self._make = make
        self._post = post_to(loop)
        self._orders = Orders()
        self._wanted: dict[Where, tuple[Topic, Position]] = {}
        self._paused: set[Where] = set()
        self._thread = ClientThread("tidegate-reader", self._serve, notices, settings.restart_wait_ms)
        self.polled_at_ms = clock.monotonic_ms()

    def start(self) -> None:
        """Idempotent; what was assigned before goes on where the listener last got records."""
        self.polled_at_ms = self._clock.monotonic_ms()
        self._thread.start()

    async def stop(self) -> bool:
        """Closes the client; False when that took too long. Idempotent."""
        return await self._thread.stop(CLOSE_MS_MAX)

    def assign(self, topic: Topic, topic_partition: int, position: Position) -> None:
        where = (topic.name, topic_partition)
        self._wanted[where] = (topic, position)
        self._paused.discard(where)
        self._orders.seek(where, position, topic)

    def unassign(self, topic: str, topic_partition: int) -> None:
        self._paused.discard((topic, topic_partition))
        self._wanted.pop((topic, topic_partition), None)
        self._orders.leave((topic, topic_partition))

    def pause(self, topic: str, topic_partition: int) -> None:
        self._paused.add((topic, topic_partition))
        self._orders.hold((topic, topic_partition), held=True)

    def resume(self, topic: str, topic_partition: int) -> None:
        self._paused.discard((topic, topic_partition))
        self._orders.hold((topic, topic_partition), held=False)

    def taken(self, topic: str, topic_partition: int, count: int) -> None:
        self._orders.taken((topic, topic_partition), count)

    def commit_hint(self, topic: str, topic_partition: int, offset: int) -> None:
        self._orders.hint((topic, topic_partition), offset)

    def _serve(self) -> None:
        """One client's life, on the reader's thread."""
        client = self._make(self._settings)
        try:
            lanes = Lanes(client, self._settings.in_flight_records_max, self._notices)
            hints = ReaderHints(self._settings, self._notices)
            self._post(self._begin_again)
            while not self._thread.stopping:
                self._turn(client, lanes, hints)
                self.polled_at_ms = self._clock.monotonic_ms()
        finally:
            client.close()

    def _turn(self, client: Client, lanes: Lanes, hints: ReaderHints) -> None:
        orders = self._orders.collect()
        for where, order in orders.items():
            if order.leave:
                hints.forget(where)
            elif order.hint is not None:
                hints.note(where, order.hint)
        lanes.carry_out(orders)
        hints.flush_if_due(self._clock.monotonic_ms())
        if found := lanes.sort(read_batch(client, self._settings)):
            self._post(self._tell, found)

    def _begin_again(self) -> None:
        """A new client holds nothing: whatever is wanted is asked of it, from where the listener stands. On the loop."""
        for where, (topic, position) in self._wanted.items():
            self._orders.seek(where, position, topic)
            self._orders.hold(where, held=where in self._paused)

    def _tell(self, found: Sequence[Read | PositionGone]) -> None:
        for each in found:
            if self._orders.era(each.where) != each.era:
                continue
            if isinstance(each, Read):
                self._stands_at(each.where, each.records)
                self._listener.records(*each.where, each.records)
            else:
                self._listener.position_gone(*each.where, each.offset)

    def _stands_at(self, where: Where, records: Sequence[Record]) -> None:
        topic, _ = self._wanted[where]
        self._wanted[where] = (topic, records[-1].offset + 1)
