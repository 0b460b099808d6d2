"""Stands before the store and spoils requests as its dice say. Knows HTTP and DynamoDB's words for errors, no item."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections import Counter
from dataclasses import replace

from tests.chaos.proxies.connections import LOOPBACK, Listener, close, reset
from tests.chaos.proxies.http_wire import HttpMessage, NotHttp, answer, read_message
from tests.chaos.proxies.store_faults import Dice, Fate, StoreFaults

IDLE_MAX = 32
"""Connections to the store that are kept for the next request: as many as a node has calls under way."""
UPSTREAM_WAIT_S = 60.0
"""Patience with a store that is frozen; what hangs so long is given up, and its sender long gone."""
CLIENT_WAIT_S = 120.0
"""So long a black hole keeps a connection whose sender never gives up."""
PASSED = "passed"
"""Counter of requests that met no fault."""
UPSTREAM_GONE = "upstream_gone"
"""Counter of requests that ended because the store itself did not answer."""
REFUSED = "refused"
"""Counter of requests that the store refused because of a condition: what a stale writer meets."""
REFUSALS = (b"ConditionalCheckFailedException", b"TransactionCanceledException")
THROTTLED = (
    "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
    "com.amazon.coral.availability#ThrottlingException",
)


class StoreProxy:
    """One way to the store.

    Attributes:
        faults: As they are now; set it at any time, from the loop: the next request meets them, and what is held goes on.
        counts: Requests by (kind of fault or `passed`, operation).
    """

    def __init__(self, upstream_port: int, seed: int | str, port: int = 0) -> None:
        self._faults = StoreFaults()
        self._set_anew = asyncio.Event()
        self.counts: Counter[tuple[str, str]] = Counter()
        self._upstream_port = upstream_port
        self._dice = Dice(seed)
        self._idle: list[_Upstream] = []
        self._listener = Listener(self._serve, port)
        self._echoes: set[asyncio.Task[HttpMessage | None]] = set()

    @property
    def faults(self) -> StoreFaults:
        return self._faults

    @faults.setter
    def faults(self, faults: StoreFaults) -> None:
        self._faults = faults
        # What the old ones held goes on.
        self._set_anew.set()
        self._set_anew = asyncio.Event()

    @property
    def port(self) -> int:
        """Where it listens, once started."""
        return self._listener.port

    async def start(self) -> None:
        await self._listener.start()

    async def close(self) -> None:
        """Ends everything that is under way."""
        await self._listener.close()
        for echo in self._echoes:
            echo.cancel()
        await asyncio.gather(*self._echoes, return_exceptions=True)
        while self._idle:
            await self._idle.pop().close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(NotHttp):
            while (request := await read_message(reader)) is not None:
                fate = self._dice.fate(self.faults, request.operation)
                self.counts[fate.kind or PASSED, request.operation] += 1
                reply = await self._meet(request, fate, reader)
                if reply is None:
                    return
                if fate.kind == "reset":
                    await _break_off(writer, reply)
                    return
                writer.write(reply.encoded())
                await writer.drain()
                if request.closes or reply.closes:
                    return

    async def _meet(self, request: HttpMessage, fate: Fate, reader: asyncio.StreamReader) -> HttpMessage | None:
        """Lets the fate happen; returns the answer, or None where the connection ends without one."""
        match fate.kind:
            case "throttle":
                return _error("400 Bad Request", THROTTLED[fate.second_form], "Rate exceeded")
            case "server_error":
                if fate.carried_out:
                    await self._forward(request)
                return _unavailable() if fate.second_form else _broken()
            case "drop_request":
                return None
            case "drop_answer":
                await self._forward(request)
                return None
            case "black_hole":
                with contextlib.suppress(TimeoutError, OSError):
                    await asyncio.wait_for(reader.read(1), CLIENT_WAIT_S)
                return None
            case "latency":
                # Whoever gave up by then did so without us: the request is on its way, and it arrives.
                await asyncio.sleep(fate.wait_ms / 1_000)
                return await self._forward(request)
            case "hold":
                await self._set_anew.wait()
                return await self._forward(request)
            case "duplicate":
                reply = await self._forward(request)
                self._later(request, fate.wait_ms)
                return reply
            case "reset" | None:
                return await self._forward(request)

    def _later(self, request: HttpMessage, wait_ms: int) -> None:
        async def echo() -> HttpMessage | None:
            await asyncio.sleep(wait_ms / 1_000)
            return await self._forward(request)

        task = asyncio.create_task(echo())
        self._echoes.add(task)
        task.add_done_callback(self._echoes.discard)

    async def _forward(self, request: HttpMessage) -> HttpMessage | None:
        """Returns the store's answer; None where it gave none, which its sender takes as it would take it from the store."""
        try:
            reply = await asyncio.wait_for(self._exchange(request), UPSTREAM_WAIT_S)
        except (NotHttp, OSError, TimeoutError):
            self.counts[UPSTREAM_GONE, request.operation] += 1
            return None
        if reply is not None and " 400 " in reply.start and any(refusal in reply.body for refusal in REFUSALS):
            self.counts[REFUSED, request.operation] += 1
        return reply

    async def _exchange(self, request: HttpMessage) -> HttpMessage | None:
        upstream = await self._kept() or await _Upstream.connect(self._upstream_port)
        try:
            reply = await upstream.ask(request)
        except BaseException:
            await upstream.close()
            raise
        if reply is None or reply.closes or len(self._idle) >= IDLE_MAX:
            await upstream.close()
        else:
            self._idle.append(upstream)
        if reply is None:
            raise NotHttp("the store ended the connection")
        return reply

    async def _kept(self) -> _Upstream | None:
        while self._idle:
            upstream = self._idle.pop()
            if upstream.usable:
                return upstream
            await upstream.close()
        return None


class _Upstream:
    """A connection to the store."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int) -> _Upstream:
        return cls(*await asyncio.open_connection(LOOPBACK, port))

    @property
    def usable(self) -> bool:
        """Whether the store has not ended it while it was idle, which would look like a lost answer."""
        return not self._reader.at_eof() and not self._writer.is_closing()

    async def ask(self, request: HttpMessage) -> HttpMessage | None:
        self._writer.write(request.encoded())
        await self._writer.drain()
        return await read_message(self._reader)

    async def close(self) -> None:
        await close(self._writer)


async def _break_off(writer: asyncio.StreamWriter, reply: HttpMessage) -> None:
    """Sends the first half of an answer, then resets the connection."""
    whole = reply.encoded()
    writer.write(whole[: len(whole) // 2])
    await writer.drain()
    reset(writer)


def _unavailable() -> HttpMessage:
    return answer("503 Service Unavailable", b"<html>Service Unavailable</html>", "text/html")


def _broken() -> HttpMessage:
    return _error("500 Internal Server Error", "com.amazonaws.dynamodb.v20120810#InternalServerError", "Internal error")


def _error(status: str, name: str, text: str) -> HttpMessage:
    said = answer(status, json.dumps({"__type": name, "message": text}).encode())
    # Every answer of DynamoDB's own has an id; one without it is a stranger's, whose word clients do not take.
    return replace(said, headers=(*said.headers, ("x-amzn-RequestId", uuid.uuid4().hex)))
