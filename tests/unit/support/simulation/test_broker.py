"""Topics of the simulated brokers that grow, or are made anew, and what is told of that."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.simulation.faults.broker_faults import calm_broker
from tests.simulation.runner.trace import Trace
from tests.simulation.world.broker import Broker, Outgoing, Reader
from tests.simulation.world.timeline import Process, Timeline
from tidegate_core.engine.actor_inputs import LogRecord

TOPIC = "tidegate.events"
LAG_MS = 2_000


class Brokers:
    """One topic of two topic partitions, and a reader of the first."""

    def __init__(self) -> None:
        self.timeline = Timeline(0)
        self.broker = Broker(self.timeline, Trace(self.timeline), calm_broker(), LAG_MS)
        self.broker.create(TOPIC, 2)
        self.read: list[bytes | None] = []
        self.gone: list[int] = []
        self.lay_in: set[str] = set()
        self.reader = Reader(Process(self.timeline, "node"), TOPIC, 0, 0, self._take, self.gone.append)
        self.broker.read(self.reader, self.broker.topics[TOPIC].id)

    def _take(self, records: Sequence[LogRecord], topic_id: str) -> None:
        self.read += [record.value for record in records]
        self.lay_in.add(topic_id)

    def append(self, value: bytes, topic_partition: int = 0) -> None:
        self.broker.produce(Outgoing(TOPIC, None, value, (), topic_partition, 500, lambda: True), lambda _: None)
        self.wait(1_000)

    def wait(self, milliseconds: int) -> None:
        self.timeline.run(self.timeline.now + milliseconds)

    def told(self) -> int:
        return self.broker.described([TOPIC])[TOPIC].topic_partitions


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def test_given_a_reader_of_a_topic_that_is_made_anew_then_its_position_is_gone_and_it_reads_no_more(
    brokers: Brokers,
) -> None:
    brokers.append(b"old")
    brokers.broker.recreate(TOPIC)
    brokers.append(b"new")
    assert (brokers.read, brokers.gone) == ([b"old"], [1])


def test_given_a_reader_that_is_unaware_then_it_reads_on_at_its_offset_and_the_records_say_where_they_lie(
    brokers: Brokers,
) -> None:
    """As a real client was seen to do, in a topic that was filled again within 100 ms."""
    brokers.append(b"old")
    before = brokers.broker.topics[TOPIC].id
    brokers.broker.recreate(TOPIC, lambda: 5_000)
    brokers.append(b"new")
    brokers.append(b"newer")
    assert brokers.read == [b"old"]
    brokers.wait(6_000)
    assert (brokers.read, brokers.gone) == ([b"old", b"newer"], [])
    assert brokers.lay_in == {before, brokers.broker.topics[TOPIC].id}
