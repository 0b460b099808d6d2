"""Real clients: one that finds no broker is told from brokers that are away."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import count, islice
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from tidegate_kafka.clients.client_config import reader_config
from tidegate_kafka.clients.connectivity import ASK_EVERY_MS, PATIENCE_MS, Connectivity, CutOff, others_find
from tidegate_kafka.clients.settings import KafkaSettings

if TYPE_CHECKING:
    from tests.integration.kafka.conftest import World

NOBODY = {"bootstrap_servers": "127.0.0.1:1"}
LOOKS = 2 * PATIENCE_MS // ASK_EVERY_MS
"""For longer than the patience lasts."""
MACHINE_S = 60.0
"""A question has half a second, which a busy machine may take for itself; a pass never takes this."""


def looks(settings: KafkaSettings, others: KafkaSettings) -> Generator[bool | None, None, None]:
    """Looks at a client of some settings again and again; a stranger has other ones."""
    client = Consumer(reader_config(settings))
    reach = Connectivity(others, others_find, now_ms=0)
    try:
        for now in count(ASK_EVERY_MS, ASK_EVERY_MS):
            yield reach.look(client, now)
    finally:
        client.close()


async def test_given_brokers_that_answer_then_the_client_finds_them(world: World) -> None:
    deadline = time.monotonic() + MACHINE_S
    with closing(looks(world.settings, world.settings)) as found:
        while not all(islice(found, LOOKS)):
            assert time.monotonic() < deadline, "the client does not find them"


async def test_given_brokers_that_nobody_finds_then_the_client_stays(world: World) -> None:
    away = world.settings.model_copy(update=NOBODY)
    with closing(looks(away, away)) as found:
        assert not any(islice(found, LOOKS))


async def test_given_brokers_that_others_find_then_the_client_is_cut_off(world: World) -> None:
    with closing(looks(world.settings.model_copy(update=NOBODY), world.settings)) as found, pytest.raises(CutOff):
        look_on(found)


def look_on(found: Iterator[bool | None]) -> None:
    """A stranger that is not answered in time lets the patience begin anew."""
    deadline = time.monotonic() + MACHINE_S
    while time.monotonic() < deadline:
        assert next(found) is False
