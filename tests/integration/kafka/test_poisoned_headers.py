"""A record whose header's name is not UTF-8, as any client of another language may send it: what is behind it goes on."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

from tidegate_kafka.consumer.partition_reader import KafkaPartitionReader
from tidegate_kafka.consumer.record_conversion import UNREADABLE
from tidegate_ports.bus import ReaderListener, Record
from tidegate_ports.clock import SystemClock

if TYPE_CHECKING:
    from tests.integration.kafka.conftest import Recorder, World

Send = Callable[[str, Sequence[tuple[bytes, bytes]]], None]
"""Sends (header name, value) to topic partition 0 of a topic, in order, and waits until the broker has them."""

# `rd_kafka_vtype_t`; the values stand in librdkafka's public header.
END, TOPIC, PARTITION, VALUE, MESSAGE_FLAGS, HEADERS = 0, 1, 3, 4, 7, 10
COPY = 2
FLUSH_MS = 30_000


@pytest.fixture(scope="module")
def client() -> ctypes.CDLL:
    """The client's own library: its Python side encodes header names, so only below it another name can be sent."""
    found = sorted(Path(next(iter(confluent_kafka.__path__)) + ".libs").glob("librdkafka*"))
    if not found:
        pytest.skip("this build of the client does not carry its library along")
    library = ctypes.CDLL(str(found[0]))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
        ("rd_kafka_conf_new", pointer, []),
        ("rd_kafka_conf_set", ctypes.c_int, [pointer, text, text, text, ctypes.c_size_t]),
        ("rd_kafka_new", pointer, [ctypes.c_int, pointer, text, ctypes.c_size_t]),
        ("rd_kafka_headers_new", pointer, [ctypes.c_size_t]),
        ("rd_kafka_header_add", ctypes.c_int, [pointer, text, ctypes.c_ssize_t, text, ctypes.c_ssize_t]),
        ("rd_kafka_flush", ctypes.c_int, [pointer, ctypes.c_int]),
        ("rd_kafka_destroy", None, [pointer]),
    ):
        getattr(library, name).restype = result
        getattr(library, name).argtypes = arguments
    return library


@pytest.fixture
def send(client: ctypes.CDLL, world: World) -> Iterator[Send]:
    trouble = ctypes.create_string_buffer(512)
    config = client.rd_kafka_conf_new()
    servers = world.settings.bootstrap_servers.encode()
    # Idempotent: the topic is new, and a batch that came before its leader would be sent again behind the next one, or twice.
    for name, value in ((b"bootstrap.servers", servers), (b"enable.idempotence", b"true")):
        assert client.rd_kafka_conf_set(config, name, value, trouble, 512) == 0
    producer = client.rd_kafka_new(0, config, trouble, 512)

    def send_all(topic: str, records: Sequence[tuple[bytes, bytes]]) -> None:
        for name, value in records:
            headers = client.rd_kafka_headers_new(1)
            assert client.rd_kafka_header_add(headers, name, len(name), b"x", 1) == 0
            sent = client.rd_kafka_producev(
                ctypes.c_void_p(producer),
                *(TOPIC, ctypes.c_char_p(topic.encode())),
                *(PARTITION, ctypes.c_int(0)),
                *(VALUE, ctypes.c_char_p(value), ctypes.c_size_t(len(value))),
                *(MESSAGE_FLAGS, ctypes.c_int(COPY)),
                *(HEADERS, ctypes.c_void_p(headers)),
                END,
            )
            assert sent == 0
        assert client.rd_kafka_flush(producer, FLUSH_MS) == 0

    yield send_all
    client.rd_kafka_destroy(producer)


MANY = 100
"""Good ones before it: what the interpreter does with the client's mistake differs between the first calls and later ones."""
MIXED = [*[(b"good", b"before")] * MANY, (b"\xff\xfebad", b"it"), (b"good", b"behind"), (b"\xff", b"again")]
GOOD = (("good", b"x"),)
READ = [*[(b"before", GOOD)] * MANY, (b"it", UNREADABLE), (b"behind", GOOD), (b"again", UNREADABLE)]


class Listener(ReaderListener):
    def __init__(self) -> None:
        self.got: list[Record] = []
        self.arrived = asyncio.Event()

    def records(self, topic: str, topic_partition: int, records: Sequence[Record]) -> None:
        self.got.extend(records)
        if len(self.got) >= len(MIXED):
            self.arrived.set()

    def position_gone(self, topic: str, topic_partition: int, offset: int) -> None:
        raise AssertionError("the log begins at 0")


async def test_given_it_among_events_then_the_reader_brings_all_of_them(world: World, send: Send) -> None:
    topic = await world.topic("events")
    await asyncio.to_thread(send, topic.name, MIXED)
    listener = Listener()
    reader = KafkaPartitionReader(
        world.settings,
        listener,
        world.facts,
        loop=asyncio.get_running_loop(),
        clock=SystemClock(),
        notices=world.notice,
    )
    reader.start()
    reader.assign(topic, 0, 0)
    await asyncio.wait_for(listener.arrived.wait(), 40)
    assert await reader.stop()
    assert [(each.value, each.headers) for each in listener.got] == READ
    assert "kafka_client_failed" not in [name for name, _ in world.notices]


async def test_given_it_among_requests_then_the_member_brings_all_of_them_and_stays(
    world: World, send: Send, recorder: Recorder
) -> None:
    topic = await world.topic("requests")
    await asyncio.to_thread(send, topic.name, MIXED)
    await world.member(recorder)
    await recorder.until(lambda: len(recorder.got) == len(MIXED), "all records")
    assert [(each.value, each.headers) for each in recorder.got] == READ
    assert "lost" not in recorder.names()
