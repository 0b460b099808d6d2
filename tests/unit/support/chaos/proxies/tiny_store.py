"""A store of three lines for the proxies' tests: it says yes to everything, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.chaos.proxies.connections import Listener
from tests.chaos.proxies.http_wire import HttpMessage, NotHttp, read_message

YES = b"HTTP/1.1 200 OK\r\nx-amzn-requestid: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"


class TinyStore:
    """A server whose port answers.

    Attributes:
        asked: Requests in the order of their arrival.
    """

    def __init__(self) -> None:
        self.asked: list[HttpMessage] = []
        self._asked = asyncio.Condition()
        self._listener = Listener(self._serve)

    @property
    def port(self) -> int:
        return self._listener.port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(NotHttp):
            while (request := await read_message(reader)) is not None:
                self.asked.append(request)
                async with self._asked:
                    self._asked.notify_all()
                writer.write(YES)
                await writer.drain()

    async def until_asked(self, count: int) -> None:
        async with self._asked:
            await self._asked.wait_for(lambda: len(self.asked) >= count)


@asynccontextmanager
async def tiny_store() -> AsyncIterator[TinyStore]:
    store = TinyStore()
    await store._listener.start()
    try:
        yield store
    finally:
        await store._listener.close()
