"""Both buses keep the port's rules: a real Kafka broker, and the broker of the simulation."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import partial

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package re-exports them without saying so
    AdminClient,
    NewPartitions,
    NewTopic,
)

from tests.conformance.bus_suite import (
    PATIENCE_S,
    BusConformance,
    BusUnderTest,
    Reading,
    ends_of,
    numbers,
    written,
)
from tests.simulation.faults.broker_faults import calm_broker
from tests.simulation.runner.trace import Trace
from tests.simulation.world.broker import RECORD_BYTES_MAX, Broker, Outgoing, Reader
from tests.simulation.world.timeline import Process, Timeline
from tests.support.servers.servers import KafkaForTests
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.rows.effects import EndOffsets, FindGaps, Gaps, Outcome, Produce, Produced, Unavailable
from tidegate_kafka.admin.log_reader import KafkaLogReader
from tidegate_kafka.admin.topic_metadata import TopicFacts
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.partition_reader import KafkaPartitionReader
from tidegate_kafka.producer.producer import KafkaPublisher
from tidegate_node.topics.offset_gaps import LogGaps
from tidegate_ports.bus import END, Position, Publisher, ReaderListener, Record, Settled, Topic
from tidegate_ports.clock import SystemClock

# -- simulated --------------------------------------------------------------------------------------------------------

SENT_FOR_MS = 2_500
METADATA_LAG_MS = 100


class SimulatedBus:
    """The simulation's broker, whose virtual time runs as fast as the test's loop turns. Also its own publisher and its own reader's maker."""

    record_bytes_max = RECORD_BYTES_MAX

    def __init__(self) -> None:
        self.timeline = Timeline(0)
        # Records of users are transactions of their own.
        faults = replace(calm_broker(), marks=1.0)
        self.broker = Broker(self.timeline, Trace(self.timeline), faults, METADATA_LAG_MS)
        self._made = 0

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self.timeline.run(self.timeline.now + 1)
            await asyncio.sleep(0)

    @property
    def publisher(self) -> Publisher:
        return self

    @property
    def impatient(self) -> Publisher:
        return self

    def another_publisher(self) -> Publisher:
        return self

    async def wait(self, milliseconds: int) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.timeline.after(milliseconds, lambda: over.set_result(None))
        await over

    # Publisher
    async def produce(self, order: Produce) -> Outcome:
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._send(order, outcome.set_result)
        return await outcome

    def produce_many(self, orders: Sequence[Produce], settled: Settled) -> None:
        outcomes: dict[int, Outcome] = {}

        def done(index: int, outcome: Outcome) -> None:
            outcomes[index] = outcome
            if len(outcomes) == len(orders):
                settled([outcomes[each] for each in range(len(orders))])

        for index, order in enumerate(orders):
            self._send(order, partial(done, index))

    def _send(self, order: Produce, done: Callable[[Outcome], None]) -> None:
        self.broker.produce(
            Outgoing(
                order.topic, order.key, order.value, order.headers, order.topic_partition, SENT_FOR_MS, lambda: True
            ),
            done,
        )

    # Topics
    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        ends: asyncio.Future[EndOffsets | Unavailable] = asyncio.get_running_loop().create_future()
        self.broker.end_offsets(topic, ends.set_result, may_be_missing=may_be_missing)
        return await ends

    async def stable_ends(self, topic: str) -> EndOffsets | Unavailable:
        """The broker of this suite has no fault that leaves a transaction open: a record and its mark come together."""
        return await self.end_offsets(topic)

    async def commit(self, topic: Topic, value: bytes) -> None:
        self.broker.topics[topic.name].is_of_users = True
        assert await self.produce(Produce(topic.name, None, value, topic_partition=0)) == Produced()

    async def gaps(self, wanted: FindGaps) -> frozenset[int] | Unavailable:
        gaps: asyncio.Future[Gaps | Unavailable] = asyncio.get_running_loop().create_future()
        self.broker.find_gaps(wanted, gaps.set_result)
        found = await gaps
        return found.topic_partitions if isinstance(found, Gaps) else found

    async def describe(self, names: Sequence[str]) -> Mapping[str, Topic]:
        described = self.broker.described(names)
        return {name: Topic(name, facts.id, facts.topic_partitions) for name, facts in described.items()}

    # What a test does to topics
    async def make_topic(self, topic_partitions: int) -> Topic:
        self._made += 1
        made = self.broker.create(f"topic-{self._made}", topic_partitions)
        return Topic(made.name, made.id, topic_partitions)

    async def grow(self, topic: Topic, more: int) -> Topic:
        self.broker.grow(topic.name, more)
        await self.wait(METADATA_LAG_MS)
        return (await self.describe([topic.name]))[topic.name]

    async def recreate(self, topic: Topic) -> Topic:
        self.broker.recreate(topic.name)
        return (await self.describe([topic.name]))[topic.name]

    def reading(self, listener: ReaderListener) -> Reading:
        return SimulatedReading(self, listener)


class SimulatedReading:
    """Readers of the simulated broker, behind the port's listener."""

    def __init__(self, bus: SimulatedBus, listener: ReaderListener) -> None:
        self._bus = bus
        self._listener = listener
        self._process = Process(bus.timeline, "node")
        self._readers: dict[tuple[str, int], Reader] = {}

    def assign(self, topic: Topic, topic_partition: int, position: Position) -> None:
        self.unassign(topic.name, topic_partition)

        def deliver(records: Sequence[LogRecord], topic_id: str) -> None:
            found = [_as_record(topic.name, topic_id, topic_partition, record) for record in records]
            self._listener.records(topic.name, topic_partition, found)

        def gone(offset: int) -> None:
            self._listener.position_gone(topic.name, topic_partition, offset)

        log = self._bus.broker.topics[topic.name].logs[topic_partition]
        offset = len(log) if position == END else position
        reader = Reader(self._process, topic.name, topic_partition, offset, deliver, gone)
        self._readers[(topic.name, topic_partition)] = reader
        self._bus.broker.read(reader, topic.id)

    def unassign(self, topic: str, topic_partition: int) -> None:
        reader = self._readers.pop((topic, topic_partition), None)
        if reader is not None:
            self._bus.broker.stop(reader)

    def taken(self, topic: str, topic_partition: int, count: int) -> None:
        """The simulated broker bounds no flow."""


def _as_record(topic: str, topic_id: str, topic_partition: int, record: LogRecord) -> Record:
    headers = tuple(record.headers)
    return Record(
        topic, topic_id, topic_partition, record.offset, record.append_time, record.key, record.value, headers
    )


class TestSimulatedBus(BusConformance):
    @pytest.fixture
    async def bus(self) -> AsyncIterator[BusUnderTest]:
        bus = SimulatedBus()
        running = asyncio.create_task(bus.run())
        yield bus
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


# -- Kafka ------------------------------------------------------------------------------------------------------------

KAFKA_RECORD_BYTES_MAX = 100_000
"""Of a whole batch, as brokers count: key, headers and some 70 bytes more are in it."""
PATIENT_MS = 30_000
IMPATIENT_MS = 6_000
"""An unknown topic is refused at half of a record's life: what a busy machine needs for a known one lies far below that."""


class KafkaBus:
    """Topics of one test on a real broker."""

    record_bytes_max = KAFKA_RECORD_BYTES_MAX

    def __init__(self, bootstrap_servers: str) -> None:
        name = f"t{uuid.uuid4().hex[:12]}"
        self.settings = KafkaSettings(
            bootstrap_servers=bootstrap_servers,
            allow_plaintext=True,
            topic_prefix=name,
            group=name,
            client_id=name,
            answer_ms_max=20_000,
        )
        self._facts = TopicFacts(self.settings)
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        self._readers: list[KafkaPartitionReader] = []
        self._made = 0
        self._publishers: list[KafkaPublisher] = []
        self._transactional: Producer | None = None
        self.publisher = self.another_publisher()
        self.impatient = self.another_publisher(IMPATIENT_MS)

    def another_publisher(self, delivery_ms_max: int = PATIENT_MS) -> Publisher:
        settings = self.settings.model_copy(update={"delivery_ms_max": delivery_ms_max})
        made = KafkaPublisher(settings, loop=asyncio.get_running_loop(), clock=SystemClock(), notices=_unheard)
        made.start()
        self._publishers.append(made)
        return made

    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        return await self._facts.end_offsets(topic, may_be_missing=may_be_missing)

    async def stable_ends(self, topic: str) -> EndOffsets | Unavailable:
        return await self._facts.stable_ends(topic)

    @asynccontextmanager
    async def open_transaction(self, topic: Topic, value: bytes) -> AsyncIterator[None]:
        """Has a record of topic partition 0 in an open transaction within the context, and aborts it."""
        producer = await asyncio.to_thread(self._begin)
        try:
            producer.produce(topic.name, value, partition=0)
            assert await asyncio.to_thread(producer.flush, PATIENCE_S) == 0
            yield
        finally:
            await asyncio.to_thread(producer.abort_transaction, PATIENCE_S)

    async def commit(self, topic: Topic, value: bytes) -> None:
        before = await self._end_of(topic)
        await asyncio.to_thread(self._commit, topic, value)
        # A commit is answered before its mark is in the log.
        async with asyncio.timeout(PATIENCE_S):
            while await self._end_of(topic) < before + 2:
                pass

    def _commit(self, topic: Topic, value: bytes) -> None:
        producer = self._begin()
        producer.produce(topic.name, value, partition=0)
        producer.commit_transaction(PATIENCE_S)

    def _begin(self) -> Producer:
        if self._transactional is None:
            config = {
                "bootstrap.servers": self.settings.bootstrap_servers,
                "transactional.id": self.settings.topic_prefix,
            }
            self._transactional = Producer(config)
            self._transactional.init_transactions(PATIENCE_S)
        self._transactional.begin_transaction()
        return self._transactional

    async def _end_of(self, topic: Topic) -> int:
        found = await self._facts.end_offsets(topic.name)
        assert isinstance(found, EndOffsets), found
        return found.offsets[f"{topic.id}/0"]

    async def gaps(self, wanted: FindGaps) -> frozenset[int] | Unavailable:
        """As a node asks the port's `RecordFinder`."""
        with closing(KafkaLogReader(self.settings, self._facts)) as finder:
            return await LogGaps(finder, SystemClock()).among(wanted.topic, wanted.topic_id, wanted.spans)

    async def describe(self, names: Sequence[str]) -> Mapping[str, Topic] | Unavailable:
        return await self._facts.describe(names)

    async def make_topic(self, topic_partitions: int) -> Topic:
        self._made += 1
        name = f"{self.settings.topic_prefix}.topic-{self._made}"
        await self._create(name, topic_partitions)
        return await self._when(name, lambda _: True)

    async def _create(self, name: str, topic_partitions: int) -> None:
        config = {"message.timestamp.type": "LogAppendTime", "max.message.bytes": str(KAFKA_RECORD_BYTES_MAX)}
        wanted = NewTopic(name, topic_partitions, 1, config=config)
        await asyncio.to_thread(self._admin.create_topics([wanted])[name].result, PATIENCE_S)

    async def grow(self, topic: Topic, more: int) -> Topic:
        number = topic.topic_partitions + more
        wanted = NewPartitions(topic.name, number)
        await asyncio.to_thread(self._admin.create_partitions([wanted])[topic.name].result, PATIENCE_S)
        return await self._when(topic.name, lambda found: found.topic_partitions == number)

    async def recreate(self, topic: Topic) -> Topic:
        await asyncio.to_thread(self._admin.delete_topics([topic.name])[topic.name].result, PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with contextlib.suppress(KafkaException):  # The broker still deletes the old one.
                    await self._create(topic.name, topic.topic_partitions)
                    break
        return await self._when(topic.name, lambda found: found.id != topic.id)

    async def _when(self, name: str, fits: Callable[[Topic], bool]) -> Topic:
        """Returns the topic when the broker reports it so: each answer takes the broker a moment."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                described = await self._facts.describe([name])
                assert not isinstance(described, Unavailable), described
                if name in described and fits(described[name]):
                    return described[name]

    def reading(self, listener: ReaderListener) -> Reading:
        loop = asyncio.get_running_loop()
        reader = KafkaPartitionReader(
            self.settings, listener, self._facts, loop=loop, clock=SystemClock(), notices=_unheard
        )
        reader.start()
        self._readers.append(reader)
        return reader

    async def close(self) -> None:
        ends = [each.stop() for each in self._publishers]
        ends += [each.stop() for each in self._readers]
        assert all(await asyncio.gather(*ends))
        self._transactional = None


def _unheard(event: str, **fields: object) -> None:
    """Notices are not part of the port's rules."""


class TestKafka(BusConformance):
    @pytest.fixture
    async def bus(self, kafka: KafkaForTests) -> AsyncIterator[BusUnderTest]:
        bus = KafkaBus(kafka.bootstrap_servers)
        yield bus
        await bus.close()

    async def test_given_an_open_transaction_then_the_stable_end_lies_before_its_first_record(
        self, bus: KafkaBus
    ) -> None:
        """B20. Of Kafka alone: no transaction stays open in the simulated broker."""
        topic = await bus.make_topic(2)
        await written(bus, topic, *numbers(2))
        async with bus.open_transaction(topic, b"open"):
            await written(bus, topic, b"behind")
            await written(bus, topic, b"elsewhere", topic_partition=1)
            assert await ends_of(bus, topic) == [4, 1]
            assert await bus.stable_ends(topic.name) == EndOffsets({f"{topic.id}/0": 2, f"{topic.id}/1": 1})
        # The answer to an abort comes before its mark is in the log.
        async with asyncio.timeout(PATIENCE_S):
            while await bus.stable_ends(topic.name) != EndOffsets({f"{topic.id}/0": 5, f"{topic.id}/1": 1}):
                pass
