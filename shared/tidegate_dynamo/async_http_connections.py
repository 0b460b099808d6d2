"""Connections to one endpoint on a loop, kept open between requests, and one exchange at a time on each.

The same promises as `http_connections.py`: a request is sent once; a connection that the server closed while it lay idle is seen
before anything is written to it; one that breaks later leaves open what became of the request.
"""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
    SSLError,
)

from tidegate_dynamo.http_response import Answer, AnswerReader, NotAnAnswer
from tidegate_ports.store import NotSent, always

if TYPE_CHECKING:
    from tidegate_dynamo.http_connections import Route
    from tidegate_dynamo.settings import DynamoSettings


NEXT_ADDRESS_S: Final = 0.25
"""RFC 8305's: then the next address of a name is tried beside the one before, so that one which nobody answers under hides no other."""


class AsyncConnections:
    """Exchanges requests for answers, on as many connections as calls ask at once.

    Args:
        route: Where to; nothing but names, addresses and TLS may lie on the way.
        settings: Time-outs, and how many are kept open between requests; those beyond are closed after their answer.
    """

    def __init__(self, route: Route, settings: DynamoSettings) -> None:
        self._route = route
        self._settings = settings
        self._idle: list[_Connection] = []

    async def exchange(self, request: bytes, may_leave: Callable[[], bool] = always) -> Answer:
        """Sends a request, once, and returns its whole answer.

        Args:
            request: Head and body.
            may_leave: Asked once a connection is there, in the step in which it is written to.

        Raises:
            NotSent: It may not leave.
            botocore.exceptions.BotoCoreError: The classes that the SDK raises: `outcomes.NEVER_SENT` where nothing can have
                been carried out, another one where that is not known.
        """
        connection = self._alive() or await self._connected()
        if not may_leave():
            self._keep(connection)
            raise NotSent
        try:
            answer = await connection.asked(request, self._settings.read_timeout_s)
        except BaseException:
            # Also a cancelled one: what comes of it belongs to nobody.
            connection.abort()
            raise
        if answer.keeps:
            self._keep(connection)
        else:
            connection.abort()
        return answer

    def close(self) -> None:
        """Closes those that are idle."""
        while self._idle:
            self._idle.pop().abort()

    def _keep(self, connection: _Connection) -> None:
        if len(self._idle) < self._settings.connections_max:
            # The last one used is the likeliest to be alive.
            self._idle.append(connection)
        else:
            connection.abort()

    def _alive(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_quiet:
                return connection
            # The server has closed it, or said something that nobody asked for.
            connection.abort()
        return None

    async def _connected(self) -> _Connection:
        route, url = self._route, self._route.endpoint.url
        host, port = route.endpoint.server
        patience_s = self._settings.connect_timeout_s
        try:
            async with asyncio.timeout(patience_s):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(url),
                    host,
                    port,
                    ssl=route.trust,
                    server_hostname=host if route.trust is not None else None,
                    ssl_handshake_timeout=patience_s if route.trust is not None else None,
                    happy_eyeballs_delay=NEXT_ADDRESS_S,
                )
        except (ssl.SSLError, ssl.CertificateError) as error:
            raise SSLError(endpoint_url=url, error=error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=url, error=error) from error
        except (OSError, ValueError, UnicodeError, RuntimeError) as error:
            # Nothing of a request has been sent, whichever of name, address and handshake it was. A name is looked up on a thread, and the
            # host may have no more of them at the moment (RuntimeError).
            raise EndpointConnectionError(endpoint_url=url, error=error) from error
        return connection


class _Connection(asyncio.Protocol):
    """One, with at most one request under way."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._wanted = 0
        self._waiting: asyncio.Future[Answer] | None = None
        self._patience_s = 0.0
        self._too_late: asyncio.TimerHandle | None = None

    # -- the exchange -------------------------------------------------------------------------------------------------

    async def asked(self, request: bytes, patience_s: float) -> Answer:
        """Writes the request and waits for its answer, each time so long as something of it comes."""
        assert self._transport is not None
        assert self._waiting is None
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        self._patience_s = patience_s
        self._wait_on()
        self._transport.write(request)
        try:
            return await self._waiting
        finally:
            self._waiting = None
            self._received.clear()
            self._wanted = 0
            if self._too_late is not None:
                self._too_late.cancel()

    @property
    def is_quiet(self) -> bool:
        """Whether it is open, and the server has neither closed it nor said anything."""
        if self._transport is None or self._transport.is_closing():
            return False
        raw = self._transport.get_extra_info("socket")
        # What the loop has not looked at yet: between a close and its notice a request would be sent into the void.
        poll = select.poll()
        poll.register(raw.fileno(), select.POLLIN)
        return not poll.poll(0)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # -- the loop's side ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        if self._waiting is None or self._waiting.done():
            # Nobody has asked: it would be taken for the next answer.
            self.abort()
            return
        self._received += data
        if len(self._received) < self._wanted:
            self._wait_on()
            return
        arrived = _Arrived(self._received)
        try:
            answer = AnswerReader(arrived).answer()
        except _Incomplete as incomplete:
            self._wanted = incomplete.bytes_wanted
            self._wait_on()
        except NotAnAnswer as error:
            self._fail(ConnectionClosedError(endpoint_url=self._url, error=error))
        else:
            self._waiting.set_result(answer if arrived.is_used_up else answer._replace(keeps=False))

    def connection_lost(self, error: Exception | None) -> None:
        why = error or NotAnAnswer("the connection ended before the answer did")
        if isinstance(why, ssl.SSLError):
            self._fail(SSLError(endpoint_url=self._url, error=why))
        else:
            self._fail(ConnectionClosedError(endpoint_url=self._url, error=why))

    # -- inside -------------------------------------------------------------------------------------------------------

    def _wait_on(self) -> None:
        if self._too_late is not None:
            self._too_late.cancel()
        self._too_late = asyncio.get_running_loop().call_later(self._patience_s, self._give_up)

    def _give_up(self) -> None:
        error = TimeoutError(f"nothing came for {self._patience_s:g} s")
        self._fail(ReadTimeoutError(endpoint_url=self._url, error=error))

    def _fail(self, error: Exception) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


class _Incomplete(Exception):
    """More has to come before it is worth looking again.

    Attributes:
        bytes_wanted: From the answer's beginning on, at least.
    """

    def __init__(self, bytes_wanted: int) -> None:
        super().__init__(bytes_wanted)
        self.bytes_wanted = bytes_wanted


class _Arrived:
    """A `wire.Source` of what has come so far, from the answer's beginning on."""

    def __init__(self, data: bytearray) -> None:
        self._data = data
        self._at = 0

    @property
    def is_used_up(self) -> bool:
        return self._at == len(self._data)

    def recv(self, size: int, /) -> bytes:
        piece = bytes(self._data[self._at : self._at + size])
        if not piece:
            raise _Incomplete(len(self._data) + 1)
        self._at += len(piece)
        return piece

    def recv_into(self, buffer: memoryview, /) -> int:
        piece = self._data[self._at : self._at + len(buffer)]
        if not piece:
            raise _Incomplete(self._at + len(buffer))
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)
