"""Answers for somebody who asks once, where there is no client; the rest needs a broker (`tests/integration/kafka`)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence

import pytest
from confluent_kafka import KafkaError, KafkaException

from tidegate_core.rows.effects import Unavailable
from tidegate_kafka.admin.log_reader import Client, KafkaLogReader
from tidegate_kafka.admin.topic_metadata import TopicFacts
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_ports.bus import LogSlice, Topic


class Facts(TopicFacts):
    """Of one topic, without a client."""

    def __init__(self) -> None:
        pass

    async def describe(self, names: Sequence[str]) -> Mapping[str, Topic] | Unavailable:
        return {name: Topic(name, "0" * 32, 1) for name in names}


@pytest.fixture
def without_client() -> Iterator[KafkaLogReader]:
    def make(_: KafkaSettings) -> Client:
        raise KafkaException(KafkaError(KafkaError._CRIT_SYS_RESOURCE, "no descriptor is left"))

    reader = KafkaLogReader(KafkaSettings(bootstrap_servers="127.0.0.1:1", allow_plaintext=True), Facts(), make)
    yield reader
    reader.close()


async def test_given_no_client_can_be_made_then_next_records_are_not_known_now(without_client: KafkaLogReader) -> None:
    """Found in review: it was raised, and the topic partition whose gap was looked at lost its actor."""
    found = await without_client.next_records("events", "0" * 32, {0: 5})
    assert isinstance(found, Unavailable)
    assert "no descriptor is left" in found.what


async def test_given_no_client_can_be_made_then_records_are_not_known_now(without_client: KafkaLogReader) -> None:
    found = await without_client.read([LogSlice("events", 0, 0, 1)], records_max=1, bytes_max=1)
    assert isinstance(found, Unavailable)


async def test_given_a_host_without_threads_then_nothing_is_known_now(
    without_client: KafkaLogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: as above."""

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", start)
        for found in (
            await without_client.next_records("events", "0" * 32, {0: 5}),
            await without_client.read([LogSlice("events", 0, 0, 1)], records_max=1, bytes_max=1),
        ):
            assert isinstance(found, Unavailable)
            assert "new thread" in found.what
