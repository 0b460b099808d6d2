from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.chaos.proxies.connections import Listener, close
from tests.chaos.proxies.link import Link

PATIENCE_S = 20.0
SILENCE_S = 0.15
"""Longer than a piece takes over the loopback, so that what has not come by then is held."""


class Echo:
    """A server that says back what it hears, and keeps it.

    Attributes:
        heard: Of all connections.
        ended: Connections whose client closed.
    """

    def __init__(self) -> None:
        self.heard = bytearray()
        self.ended = 0
        self.more = asyncio.Condition()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(1_024):
            self.heard += piece
            async with self.more:
                self.more.notify_all()
            writer.write(piece)
        self.ended += 1


@asynccontextmanager
async def a_link(echo: Echo) -> AsyncIterator[Link]:
    server = Listener(echo.serve)
    await server.start()
    link = Link(server.port)
    await link.start()
    try:
        yield link
    finally:
        await link.close()
        await server.close()


async def opened(link: Link) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", link.port)


async def comes(reader: asyncio.StreamReader, size: int = 1) -> bytes:
    return await asyncio.wait_for(reader.readexactly(size), PATIENCE_S)


async def stays_silent(reader: asyncio.StreamReader) -> bool:
    try:
        await asyncio.wait_for(reader.read(1), SILENCE_S)
    except TimeoutError:
        return True
    return False


async def until(echo: Echo, heard: bytes) -> None:
    async with asyncio.timeout(PATIENCE_S):
        async with echo.more:
            await echo.more.wait_for(lambda: bytes(echo.heard) == heard)


async def test_given_a_cut_towards_the_server_then_it_hears_nothing_until_the_end_and_then_everything() -> None:
    echo = Echo()
    async with a_link(echo) as link:
        reader, writer = await opened(link)
        writer.write(b"a")
        assert await comes(reader) == b"a"
        link.cut({"to_server"})
        writer.write(b"b")
        assert await stays_silent(reader)
        assert bytes(echo.heard) == b"a"
        link.cut(())
        assert await comes(reader) == b"b"
        await close(writer)
        assert link.counts["held_to_server"] == 1
        assert link.counts["held_to_client"] == 0


async def test_given_a_client_that_gave_up_then_what_it_sent_arrives_after_the_cut_all_the_same() -> None:
    """A late write: its sender has left, and the network still has it."""
    echo = Echo()
    async with a_link(echo) as link:
        reader, writer = await opened(link)
        writer.write(b"a")
        assert await comes(reader) == b"a"
        link.cut({"to_server", "to_client"})
        writer.write(b"late")
        await writer.drain()
        await close(writer)
        assert await stays_silent(reader) or reader.at_eof()
        assert bytes(echo.heard) == b"a"
        link.cut(())
        await until(echo, b"alate")


async def test_given_a_cut_that_loses_then_held_connections_are_reset_and_others_go_on() -> None:
    echo = Echo()
    async with a_link(echo) as link:
        (held, sender), (idle, idle_sender) = await opened(link), await opened(link)
        for reader, writer in ((held, sender), (idle, idle_sender)):
            writer.write(b"a")
            assert await comes(reader) == b"a"
        link.cut({"to_server", "to_client"}, "lose")
        sender.write(b"lost")
        assert await stays_silent(held)
        link.cut(())
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(held.read(1), PATIENCE_S)
        idle_sender.write(b"b")
        assert await comes(idle) == b"b"
        await close(sender)
        await close(idle_sender)
        assert b"lost" not in echo.heard
        assert link.counts["reset"] == 1


@pytest.mark.parametrize("direction", ["to_server"])
async def test_given_a_cut_in_any_direction_then_a_new_connection_never_comes_about(direction: str) -> None:
    echo = Echo()
    async with a_link(echo) as link:
        link.cut({direction})
        reader, writer = await opened(link)
        writer.write(b"a")
        assert await stays_silent(reader)
        link.cut(())
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(1), PATIENCE_S)
        await close(writer)
        assert bytes(echo.heard) == b""
        assert (link.counts["stalled"], link.counts["reset"]) == (1, 1)
