"""Connections of a loop to one endpoint, kept open between requests, with one exchange at a time on each.

The promises are those of `http_connections.py`. A request is sent once. A connection that the server closed while it
was idle is detected before anything is written to it. If a connection breaks later, the outcome of its request is
unknown.
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
"""Delay of RFC 8305: after it the next address of a name is tried concurrently, so that a dead address does not hide
the others."""


class AsyncConnections:
    """Exchanges requests for answers, on as many connections as there are concurrent calls.

    Args:
        route: Endpoint, without a proxy: only names, addresses and TLS are handled here.
        settings: Time-outs, and the number of idle connections kept; further ones are closed after their answer.
    """

    def __init__(self, route: Route, settings: DynamoSettings) -> None:
        self._route = route
        self._settings = settings
        self._idle: list[_Connection] = []

    async def exchange(self, request: bytes, may_leave: Callable[[], bool] = always) -> Answer:
        """Sends a request once and returns its whole answer.

        Args:
            request: Head and body.
            may_leave: Checked once a connection is open, in the same step that writes the request.

        Raises:
            NotSent: `may_leave` returned False.
            botocore.exceptions.BotoCoreError: The SDK's classes. `write_outcomes.NEVER_SENT`: nothing was carried out.
                Others: it is unknown whether the request was carried out.
        """
        connection = self._alive() or await self._connected()
        if not may_leave():
            self._keep(connection)
            raise NotSent
        try:
            answer = await connection.asked(request, self._settings.read_timeout_s)
        except BaseException:
            # After a cancellation too: a late answer would be taken for the next request's.
            connection.abort()
            raise
        if answer.keeps:
            self._keep(connection)
        else:
            connection.abort()
        return answer

    def close(self) -> None:
        """Closes idle connections."""
        while self._idle:
            self._idle.pop().abort()

    def _keep(self, connection: _Connection) -> None:
        if len(self._idle) < self._settings.connections_max:
            # The connection used last is the most likely to be alive.
            self._idle.append(connection)
        else:
            connection.abort()

    def _alive(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_quiet:
                return connection
            # The server has closed it, or sent bytes without a request.
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
            # No part of a request was sent: the name, the address or the handshake failed. A name look-up needs a
            # thread, and the host may have none left at the moment (RuntimeError).
            raise EndpointConnectionError(endpoint_url=url, error=error) from error
        return connection


class _Connection(asyncio.Protocol):
    """One connection, with at most one outstanding request."""

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
        """Writes the request and waits for its answer. The time-out restarts with each part that arrives."""
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
        """Whether the connection is open and the server has neither closed it nor sent anything."""
        if self._transport is None or self._transport.is_closing():
            return False
        raw = self._transport.get_extra_info("socket")
        # Asks the kernel, because the loop may not have seen a close yet, and a request would then be lost.
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
            # Bytes without a request would be taken for the next answer.
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
    """The answer is incomplete; parsing is worthwhile again after more bytes.

    Attributes:
        bytes_wanted: Least number of bytes needed, counted from the answer's beginning.
    """

    def __init__(self, bytes_wanted: int) -> None:
        super().__init__(bytes_wanted)
        self.bytes_wanted = bytes_wanted


class _Arrived:
    """A `Source` (`http_response.py`) of the bytes received so far, from the answer's beginning."""

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
