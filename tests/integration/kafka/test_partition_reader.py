"""Topic partitions read by manual assign from a real broker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package re-exports them without saying so
    AdminClient,
    NewPartitions,
    NewTopic,
)

from tidegate_bricks import KafkaBrick
from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_kafka.consumer.partition_reader import KafkaPartitionReader
from tidegate_ports.bus import END, ReaderListener, Record, Topic
from tidegate_ports.clock import SystemClock

if TYPE_CHECKING:
    from tests.integration.kafka.conftest import World

PATIENCE_S = 60.0


class Listener(ReaderListener):
    def __init__(self) -> None:
        self.reader: KafkaPartitionReader | None = None
        self.got: list[Record] = []
        self.gone: list[tuple[str, int, int]] = []
        self.takes = True
        self._changed = asyncio.Event()

    def records(self, topic: str, topic_partition: int, records: Sequence[Record]) -> None:
        self.got.extend(records)
        if self.takes and self.reader is not None:
            self.reader.taken(topic, topic_partition, len(records))
        self._changed.set()

    def position_gone(self, topic: str, topic_partition: int, offset: int) -> None:
        self.gone.append((topic, topic_partition, offset))
        self._changed.set()

    def offsets(self, topic_partition: int) -> list[int]:
        return [each.offset for each in self.got if each.topic_partition == topic_partition]

    async def until_offsets(self, topic_partition: int, wanted: Sequence[int]) -> None:
        await self.until(lambda: self.offsets(topic_partition)[-1:] == list(wanted)[-1:])
        assert self.offsets(topic_partition) == list(wanted)

    async def until(self, condition: object) -> None:
        assert callable(condition)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pytest.fail(f"got {[(each.topic_partition, each.offset) for each in self.got]}, gone {self.gone}")


@pytest.fixture
async def listener(world: World) -> AsyncIterator[Listener]:
    async for each in reading(world):
        yield each


async def reading(world: World) -> AsyncIterator[Listener]:
    listener = Listener()
    reader = KafkaPartitionReader(
        world.settings,
        listener,
        world.facts,
        loop=asyncio.get_running_loop(),
        clock=SystemClock(),
        notices=world.notice,
    )
    listener.reader = reader
    reader.start()
    yield listener
    assert await reader.stop()


def write(world: World, name: str, topic_partition: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": world.settings.bootstrap_servers, "enable.idempotence": True})
    for number in range(count):
        producer.produce(world.settings.topic(name), str(number).encode(), partition=topic_partition)
    assert producer.flush(PATIENCE_S) == 0


async def test_given_offset_then_records_come_from_there(world: World, listener: Listener) -> None:
    assert listener.reader is not None
    topic = await world.topic("events")
    await asyncio.to_thread(write, world, "events", 3, 10)
    listener.reader.assign(topic, 3, 4)
    await listener.until_offsets(3, range(4, 10))
    assert {each.topic_id for each in listener.got} == {topic.id}


async def test_given_end_then_only_what_is_written_later_comes(world: World, listener: Listener) -> None:
    assert listener.reader is not None
    topic = await world.topic("receipts")
    await asyncio.to_thread(write, world, "receipts", 0, 3)
    listener.reader.assign(topic, 0, END)
    async with asyncio.timeout(PATIENCE_S):
        while not listener.got:
            await asyncio.to_thread(write, world, "receipts", 0, 1)
    first = listener.offsets(0)[0]
    assert first >= 3
    assert listener.offsets(0) == list(range(first, first + len(listener.got)))


async def test_given_unassign_then_nothing_more_comes_and_a_new_assign_starts_where_it_says(
    world: World, listener: Listener
) -> None:
    assert listener.reader is not None
    topic = await world.topic("events")
    await asyncio.to_thread(write, world, "events", 0, 5)
    await asyncio.to_thread(write, world, "events", 1, 1)
    listener.reader.assign(topic, 0, 0)
    await listener.until_offsets(0, range(5))
    listener.reader.unassign(topic.name, 0)
    await asyncio.to_thread(write, world, "events", 0, 5)
    listener.reader.assign(topic, 1, 0)
    await listener.until_offsets(1, [0])
    assert listener.offsets(0) == list(range(5))
    listener.got.clear()
    listener.reader.assign(topic, 0, 2)
    await listener.until_offsets(0, range(2, 10))


async def test_given_position_beyond_the_log_then_it_is_reported(world: World, listener: Listener) -> None:
    assert listener.reader is not None
    topic = await world.topic("events")
    await asyncio.to_thread(write, world, "events", 0, 5)
    listener.reader.assign(topic, 0, 50)
    await listener.until(lambda: listener.gone == [(topic.name, 0, 50)])
    listener.reader.assign(topic, 0, 4)
    await listener.until_offsets(0, [4])


async def test_given_a_topic_made_anew_and_longer_than_before_then_its_records_say_that_they_lie_in_another_one(
    world: World, listener: Listener
) -> None:
    """The client reads on in it at its offset, under the old id, when it finds the new log long enough at its first look."""
    assert listener.reader is not None
    topic = await world.topic("events")
    await asyncio.to_thread(write, world, "events", 0, 5)
    listener.reader.assign(topic, 0, 0)
    await listener.until_offsets(0, range(5))
    await make_anew(world, topic)
    await asyncio.to_thread(write, world, "events", 0, 10)
    await listener.until(lambda: listener.gone or len(listener.got) > 5)
    assert all((each.topic_id == topic.id) == (each.offset < 5) for each in listener.got)


async def make_anew(world: World, old: Topic) -> None:
    """Returns once the broker tells of the new one: till then, what a producer writes lands in the old one, which it deletes."""
    admin = AdminClient({"bootstrap.servers": world.settings.bootstrap_servers})
    await asyncio.to_thread(admin.delete_topics([old.name])[old.name].result)
    async with asyncio.timeout(PATIENCE_S):
        while not await is_made(world, old):
            with contextlib.suppress(KafkaException):  # It is being deleted still, or it is made already.
                await asyncio.to_thread(admin.create_topics([NewTopic(old.name, 4, 1)])[old.name].result)


async def is_made(world: World, old: Topic) -> bool:
    described = await world.facts.describe([old.name])
    assert not isinstance(described, Unavailable), described
    return old.name in described and described[old.name].id != old.id


async def test_given_a_topic_that_grows_then_its_ends_say_so_and_what_is_new_is_read_beside_the_rest(
    world: World, listener: Listener
) -> None:
    assert listener.reader is not None
    topic = await world.topic("events")
    await asyncio.to_thread(write, world, "events", 0, 5)
    listener.reader.assign(topic, 0, 0)
    await listener.until_offsets(0, range(5))
    admin = AdminClient({"bootstrap.servers": world.settings.bootstrap_servers})
    await asyncio.to_thread(admin.create_partitions([NewPartitions(topic.name, 10)])[topic.name].result)
    async with asyncio.timeout(PATIENCE_S):
        while (await world.topic("events")).topic_partitions < 10:
            pass  # A broker may tell the old number for a moment, and a producer drops what is for one that it does not know.
    await asyncio.to_thread(write, world, "events", 9, 3)
    ends = await world.facts.end_offsets(topic.name)
    assert isinstance(ends, EndOffsets), ends
    assert ends.offsets == {f"{topic.id}/{number}": {0: 5, 9: 3}.get(number, 0) for number in range(10)}
    listener.reader.assign(await world.topic("events"), 9, 0)
    await listener.until_offsets(9, range(3))
    await asyncio.to_thread(write, world, "events", 0, 5)
    await listener.until_offsets(0, range(10))
    assert listener.gone == []


async def test_given_stop_and_start_then_it_goes_on_where_the_listener_stands(world: World, listener: Listener) -> None:
    assert listener.reader is not None
    topic = await world.topic("events")
    await asyncio.to_thread(write, world, "events", 0, 5)
    listener.reader.assign(topic, 0, 0)
    await listener.until_offsets(0, range(5))
    assert await listener.reader.stop()
    await asyncio.to_thread(write, world, "events", 0, 5)
    listener.reader.start()
    listener.reader.start()
    await listener.until_offsets(0, range(10))


async def test_given_broker_restarts_then_records_go_on_without_gap_or_repeat(
    fragile_world: World, stoppable_kafka: KafkaBrick
) -> None:
    async for listener in reading(fragile_world):
        assert listener.reader is not None
        topic = await fragile_world.topic("events")
        await asyncio.to_thread(write, fragile_world, "events", 0, 5)
        listener.reader.assign(topic, 0, 0)
        await listener.until_offsets(0, range(5))
        await asyncio.to_thread(stoppable_kafka.kill)
        await asyncio.to_thread(stoppable_kafka.start)
        await asyncio.to_thread(write, fragile_world, "events", 0, 5)
        await listener.until_offsets(0, range(10))
