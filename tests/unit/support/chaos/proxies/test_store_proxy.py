from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from tests.chaos.proxies.connections import close
from tests.chaos.proxies.http_wire import HttpMessage, read_message
from tests.chaos.proxies.store_faults import FaultKind, StoreFaults
from tests.chaos.proxies.store_proxy import PASSED, THROTTLED, StoreProxy
from tests.unit.support.chaos.proxies.tiny_store import TinyStore, tiny_store

PATIENCE_S = 20.0


@dataclass
class Rig:
    store: TinyStore
    proxy: StoreProxy

    async def ask(self) -> HttpMessage | None:
        """Sends one request on a connection of its own; None where it ended without an answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy.port)
        try:
            writer.write(b"POST / HTTP/1.1\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\nContent-Length: 2\r\n\r\n{}")
            return await asyncio.wait_for(read_message(reader), PATIENCE_S)
        finally:
            await close(writer)


@asynccontextmanager
async def a_rig(faults: StoreFaults) -> AsyncIterator[Rig]:
    async with tiny_store() as store:
        proxy = StoreProxy(store.port, seed=1)
        proxy.faults = faults
        await proxy.start()
        try:
            yield Rig(store, proxy)
        finally:
            await proxy.close()


def always(kind: FaultKind, wait_ms: int = 0) -> StoreFaults:
    return StoreFaults(rates={kind: 1.0}, latency_ms=(wait_ms, wait_ms), echo_ms=(wait_ms, wait_ms))


async def test_given_no_faults_then_requests_pass_and_chunks_become_a_whole_answer() -> None:
    async with a_rig(StoreFaults()) as rig:
        for _ in range(3):
            reply = await rig.ask()
            assert reply is not None
            assert (reply.start, reply.body) == ("HTTP/1.1 200 OK", b"{}")
        assert [(request.operation, request.body) for request in rig.store.asked] == [("PutItem", b"{}")] * 3
        assert rig.proxy.counts == {(PASSED, "PutItem"): 3}


async def test_given_throttling_then_both_of_dynamodbs_words_come_and_nothing_is_carried_out() -> None:
    async with a_rig(always("throttle")) as rig:
        replies = [await rig.ask() for _ in range(20)]
        said = {name for name in THROTTLED for reply in replies if reply is not None and name.encode() in reply.body}
        assert said == set(THROTTLED)
        assert {reply.start for reply in replies if reply} == {"HTTP/1.1 400 Bad Request"}
        assert rig.store.asked == []


async def test_given_errors_of_the_server_then_half_of_the_requests_are_carried_out_and_nobody_is_told() -> None:
    async with a_rig(always("server_error")) as rig:
        replies = [await rig.ask() for _ in range(40)]
        assert {reply.start.split()[1] for reply in replies if reply} == {"500", "503"}
        assert 5 < len(rig.store.asked) < 35


@pytest.mark.parametrize(("kind", "carried_out"), [("drop_request", 0), ("drop_answer", 1)])
async def test_given_a_dropped_half_then_the_connection_ends_without_an_answer(
    kind: FaultKind, carried_out: int
) -> None:
    async with a_rig(always(kind)) as rig:
        assert await rig.ask() is None
        assert len(rig.store.asked) == carried_out
        assert rig.proxy.counts == {(kind, "PutItem"): 1}


async def test_given_a_reset_then_it_comes_in_the_middle_of_the_answer() -> None:
    async with a_rig(always("reset")) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.proxy.port)
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.readexactly(10_000), PATIENCE_S)
        await close(writer)
        assert len(rig.store.asked) == 1


async def test_given_a_black_hole_then_nothing_is_said_until_the_client_gives_up() -> None:
    async with a_rig(always("black_hole")) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.proxy.port)
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.2)
        await close(writer)
        assert rig.store.asked == []


async def test_given_latency_then_the_store_is_asked_even_though_the_sender_has_left() -> None:
    async with a_rig(always("latency", wait_ms=1_000)) as rig:
        begun = time.monotonic()
        _, writer = await asyncio.open_connection("127.0.0.1", rig.proxy.port)
        writer.write(b"POST / HTTP/1.1\r\nX-Amz-Target: D.PutItem\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        await close(writer)
        assert rig.store.asked == [] or time.monotonic() - begun > 0.99
        await asyncio.wait_for(rig.store.until_asked(1), PATIENCE_S)


async def test_given_what_is_held_then_the_store_is_asked_when_faults_are_set_anew_though_the_sender_has_left() -> None:
    async with a_rig(always("hold")) as rig:
        _, writer = await asyncio.open_connection("127.0.0.1", rig.proxy.port)
        writer.write(b"POST / HTTP/1.1\r\nX-Amz-Target: D.PutItem\r\nContent-Length: 2\r\n\r\n{}")
        await asyncio.wait_for(_until_counted(rig.proxy, ("hold", "PutItem")), PATIENCE_S)
        await close(writer)
        assert rig.store.asked == []

        rig.proxy.faults = StoreFaults()

        await asyncio.wait_for(rig.store.until_asked(1), PATIENCE_S)
        assert await rig.ask() is not None


async def _until_counted(proxy: StoreProxy, what: tuple[str, str]) -> None:
    while not proxy.counts[what]:  # noqa: ASYNC110 - a counter has no event of its own
        await asyncio.sleep(0.001)


async def test_given_a_duplicate_then_it_comes_after_the_answer() -> None:
    async with a_rig(always("duplicate", wait_ms=1_000)) as rig:
        begun = time.monotonic()
        reply = await rig.ask()
        assert reply is not None
        assert len(rig.store.asked) == 1 or time.monotonic() - begun > 0.99
        await asyncio.wait_for(rig.store.until_asked(2), PATIENCE_S)
        assert rig.store.asked[0] == rig.store.asked[1]
