"""Small HTTP servers on real sockets, which behave as they are told to."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TypeAlias

ABORT = struct.pack("ii", 1, 0)
"""SO_LINGER that makes a close a reset."""
Behaviour: TypeAlias = Callable[[socket.socket, bytes, int], bool]
"""Told of each request: its connection, its bytes and its number. Returns whether the connection stays open."""


def message(status: str, body: bytes, *headers: str) -> bytes:
    """An answer with a length and a request id."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "x-amzn-requestid: R1", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def answers(status: str, body: bytes = b"{}", *headers: str, stays: bool = True) -> Behaviour:
    def behave(connection: socket.socket, _: bytes, __: int) -> bool:
        connection.sendall(message(status, body, *headers))
        return stays

    return behave


def hangs_up(*_: object) -> bool:
    return False


def resets(connection: socket.socket, *_: object) -> bool:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    return False


def stays_silent(connection: socket.socket, *_: object) -> bool:
    # Until the client gives up and closes.
    connection.recv(1)
    return False


class HttpServer:
    """Listens on a port of its own.

    Args:
        behaviour: What it does with each request.
        unread: Resets each connection once something of a request is there, and reads none of it.
        tls: Speaks TLS with this context.

    Attributes:
        requests: Whole requests, in the order in which they came.
        connections: How many there have been.
    """

    def __init__(self, behaviour: Behaviour, *, unread: bool = False, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.ended = threading.Semaphore(0)
        self._behaviour, self._unread, self._tls = behaviour, unread, tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        for connection in tuple(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(connection)
            self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), closing(connection):
            if self._unread:
                connection.recv(1, socket.MSG_PEEK)
                resets(connection)
                return
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with closing(connection):
                while request := read_request(connection):
                    with self._lock:
                        self.requests.append(request)
                        number = len(self.requests)
                    if not self._behaviour(connection, request, number):
                        break
        self.ended.release()


def read_request(connection: socket.socket) -> bytes:
    """Returns the next whole request; nothing where the client has closed."""
    request = b""
    while b"\r\n\r\n" not in request or len(request) < _size(request):
        more = connection.recv(65_536)
        if not more:
            return b""
        request += more
    return request


def _size(request: bytes) -> int:
    head, _, _ = request.partition(b"\r\n\r\n")
    lines = [line.partition(b":") for line in head.lower().split(b"\r\n")]
    return len(head) + 4 + sum(int(value) for name, _, value in lines if name == b"content-length")


@contextmanager
def http_server(
    behaviour: Behaviour, *, unread: bool = False, tls: ssl.SSLContext | None = None
) -> Iterator[HttpServer]:
    with closing(HttpServer(behaviour, unread=unread, tls=tls)) as server:
        yield server
