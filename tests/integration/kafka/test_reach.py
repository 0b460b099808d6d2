"""Real clients: one that finds no broker is told from brokers that are away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from tidegate_kafka.client_config import reader_config
from tidegate_kafka.reach import ASK_EVERY_MS, PATIENCE_MS, CutOff, Reach, others_find
from tidegate_kafka.settings import KafkaSettings

if TYPE_CHECKING:
    from tests.integration.kafka.conftest import World

NOBODY = {"bootstrap_servers": "127.0.0.1:1"}


def looked(settings: KafkaSettings, others: KafkaSettings) -> list[bool | None]:
    """Looks at a client of some settings for longer than the patience lasts; a stranger has other ones."""
    client = Consumer(reader_config(settings))
    reach = Reach(others, others_find, now_ms=0)
    try:
        return [reach.look(client, now) for now in range(ASK_EVERY_MS, 2 * PATIENCE_MS, ASK_EVERY_MS)]
    finally:
        client.close()


async def test_given_brokers_that_answer_then_the_client_finds_them(world: World) -> None:
    assert all(looked(world.settings, world.settings))


async def test_given_brokers_that_nobody_finds_then_the_client_stays(world: World) -> None:
    away = world.settings.model_copy(update=NOBODY)
    assert not any(looked(away, away))


async def test_given_brokers_that_others_find_then_the_client_is_cut_off(world: World) -> None:
    with pytest.raises(CutOff):
        looked(world.settings.model_copy(update=NOBODY), world.settings)
