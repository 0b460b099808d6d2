"""Topics on a real broker: made once, differences found, ids and end offsets as our keys need them."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_kafka.admin.topic_metadata import TopicFacts
from tidegate_kafka.admin.topic_provisioning import TIMESTAMP_TYPE, TopicAdmin, TopicsUnavailable
from tidegate_ports.bus import BeginOffsets

if TYPE_CHECKING:
    from tests.integration.kafka.conftest import World


async def test_given_topics_exist_then_applying_again_changes_nothing(world: World) -> None:
    admin = TopicAdmin(world.settings)
    assert await asyncio.to_thread(admin.apply) == []
    assert await asyncio.to_thread(admin.check) == []


async def test_given_create_time_topic_then_an_unsafe_difference_is_found_and_stays(world: World) -> None:
    settings = world.settings.model_copy(update={"topic_prefix": f"{world.settings.topic_prefix}x"})
    client = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    name = settings.topic("requests")
    await asyncio.to_thread(client.create_topics([NewTopic(name, num_partitions=4)])[name].result, 20)

    found = await asyncio.to_thread(TopicAdmin(settings).apply)

    assert {(each.what, each.found, each.unsafe) for each in found if each.topic == name} >= {
        (TIMESTAMP_TYPE, "CreateTime", True),
        ("topic partitions", "4", False),
    }
    assert {each.topic for each in found} == {name}


async def test_given_no_topics_then_check_says_so_and_makes_none(world: World) -> None:
    settings = world.settings.model_copy(update={"topic_prefix": f"{world.settings.topic_prefix}y"})
    admin = TopicAdmin(settings)
    assert [each.what for each in await asyncio.to_thread(admin.check)] == ["exists"] * 8
    assert [each.what for each in await asyncio.to_thread(admin.check)] == ["exists"] * 8


async def test_given_more_replicas_than_brokers_then_the_refusal_names_the_topic_and_asks_for_no_broker(
    world: World,
) -> None:
    changed = {"topic_prefix": f"{world.settings.topic_prefix}z", "replication_factor": 3}
    settings = world.settings.model_copy(update=changed)
    with pytest.raises(
        TopicsUnavailable, match=rf"Create of {re.escape(settings.topic('requests'))}: .*replicat"
    ) as told:
        await asyncio.to_thread(TopicAdmin(settings).apply)
    assert "is the broker reachable" not in str(told.value)


async def test_given_no_broker_then_topics_are_unavailable(world: World) -> None:
    settings = world.settings.model_copy(update={"bootstrap_servers": "127.0.0.1:1", "answer_ms_max": 500})
    with pytest.raises(TopicsUnavailable):
        await asyncio.to_thread(TopicAdmin(settings).check)
    assert isinstance(await TopicFacts(settings).end_offsets("t"), Unavailable)
    assert isinstance(await TopicFacts(settings).cluster_id(), Unavailable)


async def test_given_records_then_end_offsets_are_keyed_by_hex_topic_id(world: World) -> None:
    topic = await world.topic("events")
    assert re.fullmatch(r"[0-9a-f]{32}", topic.id)
    assert topic.topic_partitions == 8
    producer = Producer({"bootstrap.servers": world.settings.bootstrap_servers, "enable.idempotence": True})
    for _ in range(5):
        producer.produce(topic.name, b"value", partition=3)
    assert producer.flush(20) == 0

    found = await world.facts.end_offsets(topic.name)

    assert found == EndOffsets({f"{topic.id}/{number}": 5 if number == 3 else 0 for number in range(8)})


async def test_given_records_that_were_removed_then_the_log_begins_behind_them(world: World) -> None:
    topic = await world.topic("events")
    producer = Producer({"bootstrap.servers": world.settings.bootstrap_servers, "enable.idempotence": True})
    for _ in range(5):
        producer.produce(topic.name, b"value", partition=3)
    assert producer.flush(20) == 0
    client = AdminClient({"bootstrap.servers": world.settings.bootstrap_servers})
    for future in client.delete_records([TopicPartition(topic.name, 3, 4)]).values():
        await asyncio.to_thread(future.result, 20)

    found = await world.facts.begin_offsets(topic.name)

    assert found == BeginOffsets({f"{topic.id}/{number}": 4 if number == 3 else 0 for number in range(8)})


async def test_given_unknown_topic_then_it_is_left_out_and_has_no_end(world: World) -> None:
    assert await world.facts.describe(["nobody.made.this"]) == {}
    assert isinstance(await world.facts.end_offsets("nobody.made.this"), Unavailable)
    assert isinstance(await world.facts.begin_offsets("nobody.made.this"), Unavailable)
    assert isinstance(await world.facts.cluster_id(), str)
