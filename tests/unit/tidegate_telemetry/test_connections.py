"""Connections on which nobody asks for anything, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from tidegate_telemetry import connections
from tidegate_telemetry.connections import ImpatientProtocol

ASKED = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
PATIENCE_S = 0.5


async def slow(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers when the server has long lost its patience with who says nothing."""
    await asyncio.sleep(3 * PATIENCE_S)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    config = uvicorn.Config(slow, log_config=None, lifespan="off")
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ImpatientProtocol(config, state, {}), "127.0.0.1")
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield reader, writer
    finally:
        writer.close()
        server.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S_MAX", PATIENCE_S)


@pytest.mark.parametrize("said", [b"", ASKED[:10]], ids=["nothing", "half a head"])
async def test_given_a_client_that_asks_for_nothing_then_its_connection_is_closed(said: bytes) -> None:
    """One whose network was cut says nothing more, not even that it has gone: a thousand of them were all connections that there are."""
    async with connected() as (reader, writer):
        writer.write(said)
        assert await asyncio.wait_for(reader.read(), 5) == b""


async def test_given_half_a_head_behind_an_answer_then_the_connection_is_closed_as_well() -> None:
    async with connected() as (reader, writer):
        writer.write(ASKED)
        assert b"ok" in await reader.readuntil(b"ok")
        writer.write(ASKED[:10])
        assert await asyncio.wait_for(reader.read(), 5) == b""


async def test_given_an_answer_that_takes_longer_then_it_comes_and_the_connection_can_be_used_again() -> None:
    async with connected() as (reader, writer):
        for _ in range(2):
            writer.write(ASKED)
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"ok")
