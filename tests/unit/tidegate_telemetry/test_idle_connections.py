"""Connections on which nobody asks for anything, or takes what was answered, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast
from unittest.mock import Mock

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from tidegate_telemetry import idle_connections
from tidegate_telemetry.idle_connections import ImpatientProtocol

ASKED = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
PATIENCE_S = 0.5
NEVER_S = 60.0
"""Longer than this process ever stands still, which is no silence of its client's."""


async def slow(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers when the server has long lost its patience with who says nothing."""
    await asyncio.sleep(3 * PATIENCE_S)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def large(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with more than the system takes in for a client that does not read."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x" * 32_000_000})


class Watched(ImpatientProtocol):
    """Tells when a connection is gone."""

    def __init__(self, config: uvicorn.Config, state: ServerState, lost: asyncio.Event) -> None:
        super().__init__(config, state, {})
        self._lost = lost

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._lost.set()


@asynccontextmanager
async def connected(
    app: ASGIApp = slow, lost: asyncio.Event | None = None, connections_max: int | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    config = uvicorn.Config(app, log_config=None, lifespan="off", limit_concurrency=connections_max)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    watch = lost or asyncio.Event()
    server = await loop.create_server(lambda: Watched(config, state, watch), "127.0.0.1")
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield reader, writer
    finally:
        writer.close()
        server.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_connections, "HEAD_S_MAX", PATIENCE_S)
    monkeypatch.setattr(idle_connections, "TAKEN_S_MAX", PATIENCE_S)


@pytest.mark.parametrize("said", [b"", ASKED[:10]], ids=["nothing", "half a head"])
async def test_given_a_client_that_asks_for_nothing_then_its_connection_is_closed(said: bytes) -> None:
    """One whose network was cut says nothing more, not even that it has gone: a thousand of them were all connections that there are."""
    async with connected() as (reader, writer):
        writer.write(said)
        assert await asyncio.wait_for(reader.read(), NEVER_S) == b""


def from_the_request_on(monkeypatch: pytest.MonkeyPatch, patience_s: float) -> ASGIApp:
    """Answers slowly; a server that has such a request has this much patience with what follows it."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        monkeypatch.setattr(idle_connections, "HEAD_S_MAX", patience_s)
        await slow(scope, receive, send)

    return app


async def test_given_half_a_head_behind_an_answer_then_the_connection_is_closed_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idle_connections, "HEAD_S_MAX", NEVER_S)
    async with connected(from_the_request_on(monkeypatch, PATIENCE_S)) as (reader, writer):
        writer.write(ASKED)
        assert b"ok" in await reader.readuntil(b"ok")
        writer.write(ASKED[:10])
        assert await asyncio.wait_for(reader.read(), NEVER_S) == b""


async def test_given_an_answer_that_takes_longer_then_it_comes_and_the_connection_can_be_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with connected(from_the_request_on(monkeypatch, NEVER_S)) as (reader, writer):
        for _ in range(2):
            writer.write(ASKED)
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"ok")


@pytest.mark.parametrize("asked", [ASKED, 2 * ASKED], ids=["one request", "and one behind it"])
async def test_given_a_client_that_takes_nothing_of_an_answer_then_its_connection_is_given_up(asked: bytes) -> None:
    """A thousand of them were all connections that there are, for as long as they liked."""
    lost = asyncio.Event()
    async with connected(large, lost) as (_, writer):
        writer.write(asked)
        assert await asyncio.wait_for(lost.wait(), NEVER_S)


class Line:
    """Transport and loop of a connection, by hand."""

    def __init__(self) -> None:
        self.unsent = 0
        self.due: list[Callable[[], None]] = []
        self.ends: list[str] = []

    def call_later(self, _delay_s: float, callback: Callable[[], None]) -> Mock:
        self.due.append(callback)
        return Mock()

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def get_extra_info(self, _name: str) -> None:
        return None

    def abort(self) -> None:
        self.ends.append("aborted")

    def close(self) -> None:
        self.ends.append("closed")


def test_given_a_client_that_takes_an_answer_slowly_then_it_may_as_long_as_it_takes_some() -> None:
    line = Line()
    config = uvicorn.Config(large, log_config=None, lifespan="off")
    config.load()
    protocol = ImpatientProtocol(config, ServerState(), {}, cast("asyncio.AbstractEventLoop", line))
    protocol.connection_made(cast("asyncio.Transport", line))

    for line.unsent in (300, 200, 199):
        line.due.pop()()
    assert line.ends == []

    line.due.pop()()
    assert line.ends == ["aborted"]


@pytest.mark.parametrize(("path", "status"), [(b"/livez", b"200"), (b"/readyz", b"503"), (b"/api/v1/runs", b"503")])
async def test_given_as_many_connections_as_there_may_be_then_only_who_asks_whether_it_lives_is_answered(
    path: bytes, status: bytes
) -> None:
    """Found in review: the liveness probe was answered 503 as well, and half a minute of a crowd had the process killed with all that it did."""
    async with connected(connections_max=1) as (reader, writer):
        writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 " + status)
