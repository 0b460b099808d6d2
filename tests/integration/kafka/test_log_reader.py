"""Pieces of a real broker's logs, once, for somebody who asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from tidegate_core.rows.effects import Unavailable
from tidegate_kafka.admin.log_reader import KafkaLogReader
from tidegate_ports.bus import LogSlice

if TYPE_CHECKING:
    from tests.integration.kafka.conftest import World

PATIENCE_S = 60.0
"""Deadline of every wait; the machine may be busy, a pass never takes it."""


@pytest.fixture
def logs(world: World) -> Iterator[KafkaLogReader]:
    reader = KafkaLogReader(world.settings, world.facts)
    yield reader
    reader.close()


def write(world: World, name: str, *places: int) -> None:
    """One record after another, each in its topic partition, with a header and its number as value."""
    producer = Producer({"bootstrap.servers": world.settings.bootstrap_servers})
    for number, place in enumerate(places):
        producer.produce(world.settings.topic(name), str(number).encode(), partition=place, headers=[("n", b"\xff")])
        assert producer.flush(PATIENCE_S) == 0


async def test_given_letters_then_what_is_there_is_read_slice_after_slice(world: World, logs: KafkaLogReader) -> None:
    await asyncio.to_thread(write, world, "events.dlq", 0, 2, 0, 2, 0)
    topic = world.settings.topic("events.dlq")
    spans = await logs.spans(topic)
    assert spans == {0: LogSlice(topic, 0, 0, 3), 2: LogSlice(topic, 2, 0, 2)}
    assert not isinstance(spans, Unavailable)
    wanted = [LogSlice(topic, 2, 1, 2), spans[0]]
    found = await logs.read(wanted, records_max=10, bytes_max=10**6)
    assert not isinstance(found, Unavailable)
    assert [(each.topic_partition, each.offset, each.value) for each in found] == [
        (2, 1, b"3"),
        (0, 0, b"0"),
        (0, 1, b"2"),
        (0, 2, b"4"),
    ]
    assert found[0].headers == (("n", b"\xff"),)
    for bound in ({"records_max": 2, "bytes_max": 10**6}, {"records_max": 10, "bytes_max": 4}):
        fewer = await logs.read(wanted, **bound)
        assert not isinstance(fewer, Unavailable)
        assert [each.value for each in fewer] == [b"3", b"0"]


async def test_given_a_time_then_only_what_was_appended_from_then_on(world: World, logs: KafkaLogReader) -> None:
    await asyncio.to_thread(write, world, "events.dlq", 0, 0, 1)
    topic = world.settings.topic("events.dlq")
    found = await logs.read([LogSlice(topic, 0, 0, 2)], records_max=2, bytes_max=10**6)
    assert not isinstance(found, Unavailable)
    second = found[1].append_time_ms
    since = await logs.spans(topic, second)
    assert not isinstance(since, Unavailable)
    assert since[0].begin == (1 if found[0].append_time_ms < second else 0)
    assert await logs.spans(topic, second + 3_600_000) == {}


async def test_given_no_such_topic_then_nothing_is_known(logs: KafkaLogReader) -> None:
    assert isinstance(await logs.spans("there-is-none"), Unavailable)


def transactional(world: World, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": world.settings.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(PATIENCE_S)
    return producer


def begun(producer: Producer, world: World, *places: int) -> None:
    """A transaction with a record in each of these topic partitions, which is open still."""
    producer.begin_transaction()
    for place in places:
        producer.produce(world.settings.topic("events"), b"{}", partition=place)
    assert producer.flush(20) == 0


async def test_given_marks_and_aborted_records_then_no_record_lies_there_and_open_ones_hold_the_end_back(
    world: World, logs: KafkaLogReader
) -> None:
    """A commit and an abort each leave a mark that has an offset and is no record (KIP-98)."""

    def produce() -> Producer:
        first = transactional(world, f"{world.settings.topic_prefix}.marks")
        begun(first, world, 0, 1, 1)
        first.commit_transaction(PATIENCE_S)
        begun(first, world, 1)
        first.abort_transaction(PATIENCE_S)
        begun(first, world, 2)
        return first

    still_open = await asyncio.to_thread(produce)
    topic = world.settings.topic("events")
    found = await world.facts.describe([topic])
    ends = await world.facts.end_offsets(topic)
    assert not isinstance(found, Unavailable)
    assert not isinstance(ends, Unavailable)
    topic_id = found[topic].id
    assert [ends.offsets[f"{topic_id}/{number}"] for number in range(3)] == [2, 5, 1]
    stable = await world.facts.stable_ends(topic)
    assert not isinstance(stable, Unavailable)
    assert [stable.offsets[f"{topic_id}/{number}"] for number in range(4)] == [2, 5, 0, 0]
    appended = await logs.appended_at(topic, 2, 0)
    assert appended is not None
    assert abs(appended - time.time() * 1000) < PATIENCE_S * 1000, "of a record that no reader gets"
    assert await logs.appended_at(topic, 0, 1) is None, "a mark is no record"
    assert await logs.next_records(topic, topic_id, {0: 1, 1: 2, 2: 0, 3: 0}) == {0: 2, 1: 5, 2: 0, 3: 0}
    assert await logs.next_records(topic, topic_id, {0: 0, 1: 1}) == {0: 0, 1: 1}
    await asyncio.to_thread(still_open.commit_transaction, PATIENCE_S)
    assert await logs.next_records(topic, topic_id, {2: 0}) == {2: 0}
    # A commit is answered before its marks are written; the next transaction waits for them, a reader does not.
    async with asyncio.timeout(PATIENCE_S):
        while (behind := await logs.next_records(topic, topic_id, {2: 1})) == {2: 1}:
            pass
    assert behind == {2: 2}


async def test_given_an_offset_that_the_log_does_not_hold_or_another_topic_then_nothing_is_told_of_it(
    world: World, logs: KafkaLogReader
) -> None:
    await asyncio.to_thread(write, world, "events", 0)
    topic = world.settings.topic("events")
    found = await world.facts.describe([topic])
    assert not isinstance(found, Unavailable)
    assert await logs.next_records(topic, found[topic].id, {0: 9, 1: 0}) == {1: 0}
    assert await logs.next_records(topic, "0" * 32, {0: 0}) == {}
    impatient = KafkaLogReader(world.settings.model_copy(update={"answer_ms_max": 1_000}), world.facts)
    assert isinstance(await impatient.next_records("nowhere", "0" * 32, {0: 0}), Unavailable)
    impatient.close()
