"""Publishes records: many in flight, one thread for the delivery reports, one outcome for each record.

The guarded publisher carries records whose effect outside tidegate cannot be undone. It sends only while the membership
lease holds. When the lease lapses, it drops all outstanding records, and it gets a new client only once the lease holds
again. The plain publisher carries records that may repeat without harm: dead letters, receipts, wake-ups.

A key without an explicit topic partition goes to the one that Java's default partitioner chooses (murmur2). A record
without a key goes to any.

After a broker refused a batch, a second client sends that topic's records one by one (`unbatched_topics.py`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

from confluent_kafka import KafkaException, Producer

from tidegate_core.rows.effects import NotProduced, Outcome, Produce
from tidegate_kafka.clients.client_config import GUARDED_MS_MAX, producer_config
from tidegate_kafka.clients.client_log import LOG
from tidegate_kafka.clients.client_thread import ClientThread
from tidegate_kafka.clients.connectivity import Connectivity, CutOff, OthersFind, close_in_background, others_find
from tidegate_kafka.clients.error_codes import GUARD, REFUSED, UNAVAILABLE, not_produced
from tidegate_kafka.clients.loop_bridge import post_to
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.group.membership import CLOSE_MS_MAX
from tidegate_kafka.producer.delivery_reports import Deliveries, Group, Waiter
from tidegate_kafka.producer.stalled_partitions import HasLeader, StalledPartitions, has_leader
from tidegate_kafka.producer.unbatched_topics import OneByOne, one_by_one
from tidegate_ports.bus import Notices, Settled
from tidegate_ports.clock import Clock

POLL_S = 0.05
"""Longest wait for reports, which wake the thread at once. It bounds how late the thread notices a lapsed membership
lease. While records wait and no broker is found, the thread may notice it a second later (`Connectivity`), and half a
second more after records expired (`StalledPartitions`). Other nodes take over half a session after the lapse, and a
record's life ends by then too.
"""
PURGE_MS_MAX = 2_000
"""Time-out for the reports of purged records; they come from the client itself."""
ANY_TOPIC_PARTITION = -1


class ProducerClient(Protocol):
    """The part of `confluent_kafka.Producer` that is used; tests fake it."""

    def produce(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int, *, on_delivery: Any, headers: Any
    ) -> None: ...

    def poll(self, timeout: float) -> int: ...

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None: ...

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> object: ...


MakeProducer: TypeAlias = Callable[[KafkaSettings, bool], ProducerClient]


def make_producer(settings: KafkaSettings, guarded: bool) -> ProducerClient:
    return Producer({**producer_config(settings, guarded=guarded), "logger": LOG})


@dataclass(frozen=True, slots=True)
class _Line:
    """One client and the waiters for its reports; both end together.

    Attributes:
        held: List with the client; empty once the client was released.
        deliveries: Waiters for its reports.
        reach: Connectivity of the client.
    """

    held: list[ProducerClient]
    deliveries: Deliveries
    reach: Connectivity

    @property
    def client(self) -> ProducerClient:
        return self.held[0]


class KafkaPublisher:
    """Implements the port `Publisher`; guarded when `guard_holds` is given."""

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        notices: Notices,
        guard_holds: Callable[[], bool] | None = None,
        make: MakeProducer = make_producer,
        others: OthersFind = others_find,
        led: HasLeader = has_leader,
        for_one_by_one: OneByOne | None = None,
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._clock = clock
        self._notices = notices
        self._guard_holds = guard_holds
        self._make = make
        self._others = others
        self._led = led
        self._standstill = StalledPartitions(settings, led)
        self._one_by_one = for_one_by_one or OneByOne()
        self._batch_refused = (
            self._one_by_one.refused_together if for_one_by_one is None else self._one_by_one.refused_alone
        )
        self._post = post_to(loop)
        # Held for "check the lease and hand over" and for "drop the client", so that no record enters a purged client.
        # The loop and the poll thread take it, and neither waits while it holds it.
        self._lock = threading.Lock()
        self._line: _Line | None = None
        self._thread = ClientThread("tidegate-producer", self._serve, notices, settings.restart_wait_ms)
        self._alone: KafkaPublisher | None = None
        """Publisher for the topics of `_one_by_one`; None before the first such topic, and inside that publisher."""
        self.polled_at_ms = clock.monotonic_ms()

    def start(self) -> None:
        """Starts the thread. The plain publisher takes records from now on, the guarded one while the lease holds.
        Idempotent.
        """
        self.polled_at_ms = self._clock.monotonic_ms()
        if self._line is None and self._guard_holds is None:
            self._open()
        self._thread.start()
        if self._alone is not None:
            self._alone.start()

    async def stop(self) -> bool:
        """Waits for outstanding records as long as a record lives, then closes; returns False if it took too long.
        Idempotent.
        """
        ends = [self._thread.stop(self._settings.delivery_ms_max + CLOSE_MS_MAX)]
        if self._alone is not None:
            ends.append(self._alone.stop())
        return all(await asyncio.gather(*ends))

    async def produce(self, order: Produce) -> Outcome:
        return await self.send(order)

    def send(self, order: Produce) -> asyncio.Future[Outcome]:
        """Hands one record over and returns a future of its outcome. Thousands may be outstanding. Called on the
        loop.
        """
        told: asyncio.Future[Outcome] = self._loop.create_future()

        def settled(outcomes: Sequence[Outcome]) -> None:
            if not told.done():  # A cancelled caller waits no more.
                told.set_result(outcomes[0])

        self.produce_many([order], settled)
        return told

    def produce_many(self, orders: Sequence[Produce], settled: Settled) -> None:
        group = Group(len(orders), settled)
        for index, order in enumerate(orders):
            refusal = self._publisher_for(order.topic).take(order, (group, index))
            if refusal is not None:
                group.settle(index, refusal)

    def _publisher_for(self, topic: str) -> KafkaPublisher:
        if topic not in self._one_by_one:
            return self
        if self._alone is None and not self._thread.stopping:
            # Fails for example when the host has no thread left; the next record tries again.
            with suppress(KafkaException, RuntimeError):
                self._alone = self._begun_alone()
        return self._alone or self

    def _begun_alone(self) -> KafkaPublisher:
        alone = KafkaPublisher(
            one_by_one(self._settings),
            loop=self._loop,
            clock=self._clock,
            notices=self._notices,
            guard_holds=self._guard_holds,
            make=self._make,
            others=self._others,
            led=self._led,
            for_one_by_one=self._one_by_one,
        )
        alone.start()
        return alone

    def take(self, order: Produce, waiter: Waiter) -> NotProduced | None:
        """Takes one record of a group, or returns why it is refused."""
        with self._lock:
            return self._hand_over(order, waiter)

    def _hand_over(self, order: Produce, waiter: Waiter) -> NotProduced | None:
        if self._guard_holds is not None and not self._guard_holds():
            return NotProduced(GUARD, "membership of the group is not proven; not sent")
        if (line := self._line) is None:
            kind = GUARD if self._guard_holds is not None else UNAVAILABLE
            return NotProduced(kind, "there is no producer at the moment; not sent")
        line.deliveries.expect(waiter)
        number = ANY_TOPIC_PARTITION if order.topic_partition is None else order.topic_partition
        try:
            line.client.produce(
                order.topic,
                order.value,
                order.key,
                number,
                on_delivery=partial(line.deliveries.report, waiter),
                headers=list(order.headers),
            )
        except BufferError:
            line.deliveries.give_up_on(waiter)
            return NotProduced(UNAVAILABLE, f"{self._settings.queue_records_max} records are outstanding; not sent")
        except KafkaException as failure:
            line.deliveries.give_up_on(waiter)
            line.deliveries.fatal = line.deliveries.fatal or failure.args[0].fatal()
            return not_produced(failure.args[0])
        except (OverflowError, TypeError, ValueError) as wrong:
            # Invalid in any record: a number of no topic partition, a NUL in a name, half of a surrogate pair.
            line.deliveries.give_up_on(waiter)
            return NotProduced(REFUSED, f"topic {order.topic!r}: {wrong}")
        return None

    def _serve(self) -> None:
        """Polls until stopped, on the publisher's thread."""
        try:
            while not self._thread.stopping:
                self._turn()
                now, alone = self._clock.monotonic_ms(), self._alone
                self.polled_at_ms = now if alone is None else min(now, alone.polled_at_ms)
            if self._line is not None:
                self._flush(self._line, self._settings.delivery_ms_max)
        finally:
            self._drop("stopped" if self._thread.stopping else "its client failed")

    def _turn(self) -> None:
        holds = self._guard_holds is None or self._guard_holds()
        line = self._line
        if line is None:
            if not holds:
                self._thread.pause(POLL_S)
                return
            line = self._open()
        line.client.poll(POLL_S)
        line.deliveries.pass_on()
        if line.deliveries.fatal:
            self._drop("fatal error")
        elif self._guard_holds is not None and not self._guard_holds():
            self._drop("guard lapsed")
        elif self._is_cut_off(line):
            self._drop("it found no broker, and a new client does")
        elif (place := self._standstill.look(self._clock.monotonic_ms())) is not None:
            # The outstanding records of other topic partitions finish first, so that none of them is sent twice because
            # of this.
            topic, number = place
            self._drop(f"records to {topic} [{number}] expire although it has a leader", GUARDED_MS_MAX)

    def _is_cut_off(self, line: _Line) -> bool:
        """Whether the client is cut off from the brokers.

        Queried while records wait and none is acknowledged, and then until the client is known to find a broker.
        Otherwise an old suspicion would turn the next outage, hours later, into proof.
        """
        now = self._clock.monotonic_ms()
        if line.deliveries.acknowledged:
            line.deliveries.acknowledged = False
            line.reach.heard(now)
        elif len(line.deliveries) or line.reach.suspects:
            try:
                line.reach.look(line.client, now)
            except CutOff:
                return True
        return False

    def _open(self) -> _Line:
        client = self._make(self._settings, self._guard_holds is not None)
        reach = Connectivity(self._settings, self._others, self._clock.monotonic_ms())
        self._standstill.begin_again()
        line = _Line([client], Deliveries(self._post, self._standstill, self._batch_refused), reach)
        with self._lock:
            self._line = line
        return line

    def _flush(self, line: _Line, patience_ms: int) -> None:
        """Waits for reports of outstanding records, as long as the membership lease holds."""
        until = self._clock.monotonic_ms() + patience_ms
        while len(line.deliveries) and self._clock.monotonic_ms() < until:
            line.client.poll(POLL_S)
            line.deliveries.pass_on()
            if self._guard_holds is not None and not self._guard_holds():
                return

    def _drop(self, reason: str, patience_ms: int = 0) -> None:
        """Stops accepting records, purges queued and outstanding ones, reports their outcomes and releases the client.

        Args:
            reason: Text for the log.
            patience_ms: Time for outstanding records to finish before the purge.
        """
        with self._lock:
            line, self._line = self._line, None
        if line is None:
            return
        self._notices("kafka_producer_dropped", reason=reason, under_way=len(line.deliveries))
        try:
            self._flush(line, patience_ms)
            line.client.purge(in_queue=True, in_flight=True)
            self._hear_out(line)
        finally:
            line.deliveries.abandon()
            close_in_background(line.held)

    def _hear_out(self, line: _Line) -> None:
        """Collects the reports of purged records.

        The client's `flush` is not used. It raises a fatal error among the reports and then calls the remaining
        callbacks with that exception set, so each of them fails.
        """
        until = self._clock.monotonic_ms() + PURGE_MS_MAX
        while len(line.deliveries) and self._clock.monotonic_ms() < until:
            with suppress(KafkaException):  # The client is dropped in any case.
                line.client.poll(POLL_S)
