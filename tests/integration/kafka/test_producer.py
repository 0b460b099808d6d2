"""Outcomes of records that were produced to a real broker, and what a lapse of the guard does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package re-exports them without saying so
    AdminClient,
    NewTopic,
)

from tests.support.servers.servers import stand_still
from tidegate_bricks import KafkaBrick
from tidegate_core.rows.effects import EndOffsets, NotProduced, Outcome, Produce, Produced
from tidegate_kafka.producer.producer import KafkaPublisher
from tidegate_ports.clock import SystemClock

if TYPE_CHECKING:
    from tests.integration.kafka.conftest import World

PATIENCE_S = 60.0
"""Deadline of every wait; the machine may be busy, a pass never takes it."""


def publisher(world: World, guard_holds: Callable[[], bool] | None = None, **changes: object) -> KafkaPublisher:
    made = KafkaPublisher(
        world.settings.model_copy(update=changes),
        loop=asyncio.get_running_loop(),
        clock=SystemClock(),
        notices=world.notice,
        guard_holds=guard_holds,
    )
    made.start()
    return made


async def delivered(made: KafkaPublisher, order: Produce) -> None:
    """Produces again until the broker has the record, as those who use a publisher do.

    There may be no client yet (a guarded publisher makes it when it first sees the guard hold), and on a busy machine a
    record may outlive its short life before the broker answers.
    """
    async with asyncio.timeout(PATIENCE_S):
        while (outcome := await made.produce(order)) != Produced():
            assert isinstance(outcome, NotProduced)
            assert outcome.kind in ("guard", "unavailable"), outcome
            await asyncio.sleep(0.01)


@pytest.fixture
async def plain(world: World) -> AsyncIterator[KafkaPublisher]:
    made = publisher(world)
    yield made
    assert await made.stop()


def kind_of(outcome: Outcome) -> str | None:
    return outcome.kind if isinstance(outcome, NotProduced) else None


async def end_of(world: World, name: str) -> int:
    found = await world.facts.end_offsets(world.settings.topic(name))
    assert isinstance(found, EndOffsets), found
    return sum(found.offsets.values())


async def test_given_thousands_in_flight_then_each_is_answered_and_in_the_log_once(
    world: World, plain: KafkaPublisher
) -> None:
    topic = world.settings.topic("runs")
    waiting = [plain.send(Produce(topic, str(number).encode(), b"v")) for number in range(5_000)]
    assert set(await asyncio.gather(*waiting)) == {Produced()}
    assert await end_of(world, "runs") == 5_000


async def test_given_unknown_topic_then_it_is_refused_and_others_go_on(world: World) -> None:
    # An unknown topic is refused at half of a record's life: what a busy machine needs for a known one lies far below that.
    made = publisher(world, delivery_ms_max=10_000)
    unknown = made.send(Produce("nobody.made.this", None, b"v"))
    assert await made.produce(Produce(world.settings.topic("runs"), None, b"v")) == Produced()
    outcome = await unknown
    assert isinstance(outcome, NotProduced)
    assert outcome.kind == "refused"
    assert outcome.message.split(":")[0] in {"_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART"}
    outcome = await made.produce(Produce(world.settings.topic("runs"), None, b"v", topic_partition=99))
    assert isinstance(outcome, NotProduced)
    assert outcome.kind == "refused"
    assert await made.stop()


@pytest.mark.parametrize(
    "size", [pytest.param(5_000_000, id="topic's limit"), pytest.param(7_000_000, id="our own limit")]
)
async def test_given_too_large_record_then_it_is_refused(world: World, plain: KafkaPublisher, size: int) -> None:
    outcome = await plain.produce(Produce(world.settings.topic("requests"), None, bytes(size)))
    assert isinstance(outcome, NotProduced)
    assert (outcome.kind, "MSG_SIZE_TOO_LARGE" in outcome.message) == ("refused", True)


@pytest.mark.parametrize(
    ("config", "key", "size"),
    [
        pytest.param({"max.message.bytes": "20000"}, b"k", 30_000, id="too small for all together"),
        pytest.param({"cleanup.policy": "compact"}, None, 1_000, id="compacted, and one has no key"),
    ],
)
async def test_given_a_topic_that_takes_all_records_but_one_then_it_gets_them_however_many_go_together(
    world: World, plain: KafkaPublisher, config: dict[str, str], key: bytes | None, size: int
) -> None:
    """Brokers refuse the batch. What was due together was refused together, as often as it was tried, and ended as dead letters."""
    topic = f"{world.settings.topic_prefix}.particular"
    admin = AdminClient({"bootstrap.servers": world.settings.bootstrap_servers})
    made = admin.create_topics([NewTopic(topic, 1, config=config)])[topic]
    await asyncio.to_thread(made.result, PATIENCE_S)
    fitting = [Produce(topic, b"k", bytes(1_000))] * 100
    bad = Produce(topic, key, bytes(size))

    async def produced() -> list[Produce]:
        """Again what may come to pass, as those who use a publisher do; returns what was refused for good."""
        left: list[Produce] = [*fitting, bad, *fitting]
        refused: list[Produce] = []
        while left:
            told: asyncio.Future[Sequence[Outcome]] = asyncio.get_running_loop().create_future()
            plain.produce_many(left, told.set_result)
            outcomes = list(zip(left, await told, strict=True))
            refused += [order for order, outcome in outcomes if kind_of(outcome) == "refused"]
            left = [order for order, outcome in outcomes if kind_of(outcome) == "unavailable"]
        return refused

    assert await asyncio.wait_for(produced(), PATIENCE_S) == [bad]


async def test_given_large_request_and_its_dead_letter_then_both_fit(world: World, plain: KafkaPublisher) -> None:
    large = bytes(4 * 1024 * 1024 - 1024)
    assert await plain.produce(Produce(world.settings.topic("requests"), None, large)) == Produced()
    headers = (("tidegate.error.message", bytes(100_000)),)
    assert await plain.produce(Produce(world.settings.topic("requests.dlq"), None, large, headers)) == Produced()


async def test_given_keys_then_they_go_where_java_puts_them(world: World, plain: KafkaPublisher) -> None:
    """Golden values of Kafka's own `Utils.murmur2` test: (hash & 0x7fffffff) % 8."""
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    topic = world.settings.topic("runs")
    for key in hashes:
        assert await plain.produce(Produce(topic, key, key, (("h", b"1"),))) == Produced()
    reader = Consumer(
        {"bootstrap.servers": world.settings.bootstrap_servers, "group.id": "any", "enable.auto.commit": False}
    )
    reader.assign([TopicPartition(topic, number, 0) for number in range(8)])
    found: dict[bytes | None, int | None] = {}
    while len(found) < len(hashes):
        if (message := await asyncio.to_thread(reader.poll, 1)) is not None:
            found[message.key()] = message.partition()
    await asyncio.to_thread(reader.close)
    assert found == {key: (value & 0x7FFFFFFF) % 8 for key, value in hashes.items()}


async def test_given_guard_does_not_hold_then_nothing_is_sent(world: World) -> None:
    held = [False]
    made = publisher(world, lambda: held[0])
    order = Produce(world.settings.topic("runs"), None, b"v", guarded=True)
    outcome = await made.produce(order)
    assert isinstance(outcome, NotProduced)
    assert outcome.kind == "guard"
    assert await end_of(world, "runs") == 0
    held[0] = True
    await delivered(made, order)
    assert await end_of(world, "runs") >= 1  # More where one was given up that the broker had all the same.
    assert await made.stop()


async def test_given_guard_lapses_while_records_are_under_way_then_they_are_purged_and_a_new_client_serves(
    fragile_world: World, stoppable_kafka: KafkaBrick
) -> None:
    held = [True]
    made = publisher(fragile_world, lambda: held[0], session_ms=60_000)
    order = Produce(fragile_world.settings.topic("runs"), None, b"v", guarded=True)
    await delivered(made, order)
    await asyncio.to_thread(stand_still, stoppable_kafka)
    waiting = [made.send(order) for _ in range(100)]

    held[0] = False
    outcomes = await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)

    assert {outcome.kind for outcome in outcomes if isinstance(outcome, NotProduced)} == {"unavailable"}
    assert not [outcome for outcome in outcomes if isinstance(outcome, Produced)]
    assert [fields["reason"] for event, fields in fragile_world.notices if event == "kafka_producer_dropped"] == [
        "guard lapsed"
    ]
    await asyncio.to_thread(stoppable_kafka.resume)
    held[0] = True
    await delivered(made, order)
    assert await made.stop()


async def test_given_broker_is_away_then_records_are_unavailable_and_go_on_when_it_is_back(
    fragile_world: World, stoppable_kafka: KafkaBrick
) -> None:
    made = publisher(fragile_world, delivery_ms_max=1_500)
    order = Produce(fragile_world.settings.topic("runs"), None, b"v")
    await delivered(made, order)
    await asyncio.to_thread(stoppable_kafka.stop)
    outcome = await made.produce(order)
    assert isinstance(outcome, NotProduced)
    assert outcome.kind == "unavailable"
    await asyncio.to_thread(stoppable_kafka.start)
    await delivered(made, order)
    assert await made.stop()


async def test_given_more_than_the_queue_holds_then_the_rest_is_unavailable_at_once(
    fragile_world: World, stoppable_kafka: KafkaBrick
) -> None:
    made = publisher(fragile_world, queue_records_max=10, delivery_ms_max=1_000)
    await asyncio.to_thread(stoppable_kafka.stop)
    order = Produce(fragile_world.settings.topic("runs"), None, b"v")
    waiting = [made.send(order) for _ in range(15)]
    at_once = [waiter.result() for waiter in waiting if waiter.done()]
    assert len(at_once) == 5
    for outcome in at_once + await asyncio.gather(*waiting):
        assert isinstance(outcome, NotProduced)
        assert outcome.kind == "unavailable"
    assert await made.stop()


async def test_given_records_under_way_then_stop_waits_for_them(world: World) -> None:
    made = publisher(world, linger_ms=100)
    waiting = [made.send(Produce(world.settings.topic("runs"), None, b"v")) for _ in range(10)]
    assert await made.stop()
    assert await made.stop()
    assert set(await asyncio.gather(*waiting)) == {Produced()}
    after = await made.produce(Produce(world.settings.topic("runs"), None, b"v"))
    assert isinstance(after, NotProduced)
    assert after.kind == "unavailable"
