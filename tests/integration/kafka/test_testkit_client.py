"""The rigs' own client on a real broker: a campaign had ended as its topic grew (`Local: Unknown partition`)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.cluster.topic_reader import add_topic_partitions, ends_of, make_topic
from tests.support.cluster.user_client import Client

if TYPE_CHECKING:
    from tests.integration.kafka.conftest import World


async def test_given_a_topic_that_has_grown_then_a_client_sends_to_what_is_new_at_once(
    world: World, tmp_path: Path
) -> None:
    brokers, topic = world.settings.bootstrap_servers, f"{world.settings.topic_prefix}.grows"

    def sent() -> list[int]:
        make_topic(brokers, topic, 1)
        with Client(brokers, tmp_path / "acknowledged.jsonl") as client:
            client.send_to(topic, {}, topic_partition=0)
            client.flush()
            add_topic_partitions(brokers, topic, 3)
            client.send_to(topic, {}, topic_partition=2)
            client.flush()
        return list(ends_of(brokers, topic).values())

    assert await asyncio.to_thread(sent) == [1, 0, 1]
