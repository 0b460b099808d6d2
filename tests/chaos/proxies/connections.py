"""What all proxies do with connections: take them, end them, reset them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import TypeAlias

LOOPBACK = "127.0.0.1"
Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Listener:
    """A port, and a task for each connection to it.

    Attributes:
        port: Where it listens, once started; 0 takes a free one.
    """

    def __init__(self, serve: Serve, port: int = 0) -> None:
        self.port = port
        self._serve = serve
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._take, LOOPBACK, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Ends all connections."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # Its peer is gone, or we end it: both are what proxies live with.
        finally:
            self._tasks.discard(task)
            await close(writer)


async def close(writer: asyncio.StreamWriter) -> None:
    """Closes a connection, whatever state it is in."""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def reset(writer: asyncio.StreamWriter) -> None:
    """Closes a connection with a reset and not in peace."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()
