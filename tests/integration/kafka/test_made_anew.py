"""Topics that are deleted and made again behind a restart of the broker, where the client library takes all news of the next one for old ones.

Found by `make chaos`: after a broker's restart had raised the leader epochs, no node read anything of the requests topic that was made anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from tests.integration.kafka.test_partition_reader import Listener, reading
from tests.support.cluster.topic_reader import make_topic_anew
from tidegate_bricks import KafkaBrick

if TYPE_CHECKING:
    from tests.integration.kafka.conftest import World

ALL = set(range(8))


def write(world: World, name: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": world.settings.bootstrap_servers, "enable.idempotence": True})
    for number in range(count):
        producer.produce(name, str(number).encode(), partition=0)
    assert producer.flush(30) == 0


def restart(broker: KafkaBrick) -> None:
    broker.stop()
    broker.start()


async def test_given_a_member_that_knew_the_former_topic_then_it_reads_the_next_one(
    fragile_world: World, stoppable_kafka: KafkaBrick
) -> None:
    name = (await fragile_world.topic("requests")).name
    await asyncio.to_thread(restart, stoppable_kafka)
    _, told = await fragile_world.member(follows=True)
    await told.until(lambda: told.owned == ALL, "all")
    await asyncio.to_thread(write, fragile_world, name, 3)
    await told.until(lambda: len(told.got) == 3, "records of the former one")
    told.got.clear()

    await asyncio.to_thread(make_topic_anew, fragile_world.settings.bootstrap_servers, name)
    await asyncio.to_thread(write, fragile_world, name, 2)

    await told.until(lambda: len(told.got) == 2, "records of the next one")
    next_one = await fragile_world.topic("requests")
    assert [(each.topic_id, each.offset) for each in told.got] == [(next_one.id, 0), (next_one.id, 1)]
    assert "lost" not in told.names()  # It handed over.


@pytest.fixture
async def listener(fragile_world: World, stoppable_kafka: KafkaBrick) -> AsyncIterator[Listener]:
    """Its client learns of the leader epochs behind a restart."""
    await asyncio.to_thread(restart, stoppable_kafka)
    async for each in reading(fragile_world):
        yield each


async def test_given_a_reader_that_knew_the_former_topic_then_it_is_told_that_its_position_is_gone(
    fragile_world: World, listener: Listener
) -> None:
    assert listener.reader is not None
    topic = await fragile_world.topic("events")
    listener.reader.assign(topic, 0, 0)
    await asyncio.to_thread(write, fragile_world, topic.name, 3)
    await listener.until_offsets(0, range(3))

    await asyncio.to_thread(make_topic_anew, fragile_world.settings.bootstrap_servers, topic.name)
    await asyncio.to_thread(write, fragile_world, topic.name, 2)

    await listener.until(lambda: listener.gone == [(topic.name, 0, 3)])
    listener.reader.assign(await fragile_world.topic("events"), 0, 0)
    await listener.until(lambda: [each.offset for each in listener.got] == [0, 1, 2, 0, 1])
