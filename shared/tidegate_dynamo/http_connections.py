"""Connections of threads to one endpoint, kept open between requests, with one exchange at a time on each.

urllib3 opens them, as it does for the SDK: names, proxies, tunnels, TLS. The exchange itself is ours
(`http_response.py`). Certificates are verified against those that the SDK would use, and proxies come from the
environment through the SDK's functions.

A request is sent once. A connection that the server closed while it was idle is detected before anything is written to
it, and replaced. If a connection breaks later, the outcome of its request is unknown, and nothing here sends it again.
"""

from __future__ import annotations

import os
import socket
import ssl
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ProxyConnectionError,
    ReadTimeoutError,
    SSLError,
)
from botocore.httpsession import ProxyConfiguration, create_urllib3_context, get_cert_path, mask_proxy_url
from botocore.utils import get_environ_proxies
from urllib3.connection import HTTPConnection, HTTPSConnection, ProxyConfig
from urllib3.exceptions import ConnectTimeoutError as ConnectTimedOut
from urllib3.exceptions import HTTPError, NewConnectionError
from urllib3.exceptions import SSLError as TlsFailed
from urllib3.util.url import Url, parse_url

from tidegate_dynamo.http_response import Answer, AnswerReader, NotAnAnswer, Source

if TYPE_CHECKING:
    from tidegate_dynamo.endpoint import Endpoint
    from tidegate_dynamo.settings import DynamoSettings

SOCKET_OPTIONS: Final[list[tuple[int, int, int | bytes]]] = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
]


class Route:
    """Way to open connections to an endpoint.

    Args:
        endpoint: Endpoint.
        settings: Time-outs.
        ca_bundle: File of trusted certificates; None leaves the choice to the SDK.

    Attributes:
        trust: TLS context with the trusted certificates; None if no part of the way is encrypted.

    Raises:
        ValueError: The file of trusted certificates cannot be used.
    """

    def __init__(self, endpoint: Endpoint, settings: DynamoSettings, ca_bundle: str | None) -> None:
        self.endpoint = endpoint
        self._settings = settings
        proxies = ProxyConfiguration(get_environ_proxies(endpoint.url))
        url = proxies.proxy_url_for(endpoint.url)
        self._proxy: Url | None = parse_url(url) if url else None
        self._masked_proxy = mask_proxy_url(url) if url else ""
        self._proxy_headers: dict[str, str] = proxies.proxy_headers_for(url) if url else {}
        own_tls = self._proxy is not None and self._proxy.scheme == "https"
        self.trust = _trust(ca_bundle) if endpoint.is_encrypted or own_tls else None

    @property
    def is_direct(self) -> bool:
        """Whether no proxy is used."""
        return self._proxy is None

    @property
    def request_head(self) -> str:
        """First line, `Host`, and the headers that a proxy requires in each request."""
        forwarded = self._proxy is not None and not self.endpoint.is_encrypted
        target = self.endpoint.url if forwarded else self.endpoint.path
        own = self._proxy_headers if forwarded else {}
        lines = [f"POST {target} HTTP/1.1", f"Host: {self.endpoint.host}", *(f"{k}: {v}" for k, v in own.items())]
        return "".join(f"{line}\r\n" for line in lines)

    def connected(self) -> HTTPConnection:
        """Returns a new connection, through the proxy if there is one. No part of a request has been sent.

        Raises:
            botocore.exceptions.BotoCoreError: The class that the SDK would raise.
        """
        connection = self._connection()
        url = self.endpoint.url
        try:
            connection.connect()
        except (ssl.SSLError, ssl.CertificateError, TlsFailed) as error:
            connection.close()
            raise SSLError(endpoint_url=url, error=error) from error
        except (HTTPError, OSError) as error:
            connection.close()
            if self._proxy is not None:
                raise ProxyConnectionError(proxy_url=self._masked_proxy, error=error) from error
            # In this order, because urllib3's second class is a subclass of its first one.
            if isinstance(error, NewConnectionError):
                raise EndpointConnectionError(endpoint_url=url, error=error) from error
            if isinstance(error, ConnectTimedOut):
                raise ConnectTimeoutError(endpoint_url=url, error=error) from error
            if isinstance(error, TimeoutError):
                # During the handshake; the SDK raises this class for it.
                raise ReadTimeoutError(endpoint_url=url, error=error) from error
            raise ConnectionClosedError(endpoint_url=url, error=error) from error
        except (ValueError, UnicodeError) as error:
            connection.close()
            raise HTTPClientError(error=error) from error
        assert connection.sock is not None
        connection.sock.settimeout(self._settings.read_timeout_s)
        return connection

    def _connection(self) -> HTTPConnection:
        host, port = self.endpoint.server
        if self._proxy is not None and self._proxy.host:
            near = (self._proxy.host.strip("[]"), self._proxy.port or (443 if self._proxy.scheme == "https" else 80))
        else:
            near = (host, port)
        patience = self._settings.connect_timeout_s
        if self.trust is None:
            return HTTPConnection(*near, timeout=patience, socket_options=SOCKET_OPTIONS, proxy=self._proxy)
        connection = HTTPSConnection(
            *near,
            timeout=patience,
            socket_options=SOCKET_OPTIONS,
            ssl_context=self.trust,
            proxy=self._proxy,
            proxy_config=ProxyConfig(self.trust, False, None, None) if self._proxy is not None else None,
        )
        if self._proxy is not None and self.endpoint.is_encrypted:
            connection.set_tunnel(host, port, self._proxy_headers, scheme=self._proxy.scheme or "http")
        return connection


class Connections:
    """Exchanges requests for answers, on as many connections as there are concurrent calls. Thread-safe.

    Args:
        route: Way to open connections.
        idle_max: Number of idle connections kept; further ones are closed after their answer.
    """

    def __init__(self, route: Route, idle_max: int) -> None:
        self._route = route
        self._idle_max = idle_max
        # Appending and popping are atomic. The connection used last is the most likely to be alive.
        self._idle: list[HTTPConnection] = []
        # Closes the sockets even if a caller drops the client without `close`.
        weakref.finalize(self, _close_all, self._idle)

    def exchange(self, request: bytes) -> Answer:
        """Sends a request once and returns its whole answer.

        Raises:
            botocore.exceptions.BotoCoreError: The SDK's classes. `write_outcomes.NEVER_SENT`: nothing was carried out.
                Others: it is unknown whether the request was carried out.
        """
        connection = self._alive()
        try:
            answer = self._exchanged(connection, request)
        except BaseException:
            connection.close()
            raise
        if answer.keeps and len(self._idle) < self._idle_max:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    def close(self) -> None:
        """Closes idle connections. Connections in use stay open until the server closes them."""
        _close_all(self._idle)

    def _alive(self) -> HTTPConnection:
        while (connection := _last(self._idle)) is not None:
            if connection.is_connected:
                return connection
            # The server has closed it, or sent bytes without a request.
            connection.close()
        return self._route.connected()

    def _exchanged(self, connection: HTTPConnection, request: bytes) -> Answer:
        url = self._route.endpoint.url
        assert connection.sock is not None
        try:
            # A server may refuse the request and close the connection while it is being written; its answer can still
            # be read.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sock.sendall(request)
            return AnswerReader(cast(Source, connection.sock)).answer()
        except TimeoutError as error:
            raise ReadTimeoutError(endpoint_url=url, error=error) from error
        except ssl.SSLError as error:
            raise SSLError(endpoint_url=url, error=error) from error
        except (OSError, NotAnAnswer) as error:
            raise ConnectionClosedError(endpoint_url=url, error=error) from error


def _last(idle: list[HTTPConnection]) -> HTTPConnection | None:
    try:
        return idle.pop()
    except IndexError:
        # Empty: another thread may have taken the last one.
        return None


def _close_all(idle: list[HTTPConnection]) -> None:
    while (connection := _last(idle)) is not None:
        connection.close()


def _trust(ca_bundle: str | None) -> ssl.SSLContext:
    path = ca_bundle or os.environ.get("REQUESTS_CA_BUNDLE") or get_cert_path(True)
    context: ssl.SSLContext = create_urllib3_context()
    context.check_hostname = True
    try:
        # Loaded once and not for each connection: reading the bundle takes longer than the handshake.
        context.load_verify_locations(path)
    except OSError as error:
        raise ValueError(f"store: the trusted certificates in {path} cannot be used: {error}") from error
    return context
