"""The part of HTTP/1.1 that answers of DynamoDB need, strictly checked.

Not `http.client`, whose header objects cost several times the CPU of the rest of a call (figures in
docs/internals/decisions/0029-a-thin-client-for-items.md). An answer that ends early, has no length, or has two lengths is
`NotAnAnswer`, and its connection is not used again.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

LINE_BYTES_MAX: Final = 64 * 1024
"""Largest head; DynamoDB's has 300 bytes."""
BODY_BYTES_MAX: Final = 128 * 1024 * 1024
"""Largest body. DynamoDB's largest answer holds 16 MB of items, which JSON makes six times as large if all is control
characters."""
RECEIVE_BYTES: Final = 64 * 1024
"""Size of one read from the socket; most answers fit into one."""
INTERIM_MAX: Final = 8
"""Most answers of status 100 before the real one. A proxy may send them unasked."""
SIZE_DIGITS_MAX: Final = 16
"""Most digits of a length."""
BODILESS: Final = frozenset({204, 304})


class Source(Protocol):
    """The part of a socket, with or without TLS, that answers are read from."""

    def recv(self, size: int, /) -> bytes: ...

    def recv_into(self, buffer: memoryview, /) -> int: ...


class NotAnAnswer(Exception):
    """The connection ended within an answer, or the bytes are not HTTP/1.1."""


class Answer(NamedTuple):
    """A whole answer.

    Attributes:
        status: HTTP status, such as 200.
        headers: Names in lower case; of a repeated name the last value.
        body: Body without transfer coding.
        keeps: Whether the connection can carry another request.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    keeps: bool


class AnswerReader:
    """Reads one answer from a socket. A new reader is needed for each exchange."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._received = b""

    def answer(self) -> Answer:
        """Reads the answer. Each read waits up to the socket's time-out.

        Raises:
            NotAnAnswer: The answer is incomplete or malformed.
            OSError: The connection broke or timed out.
        """
        for _ in range(INTERIM_MAX):
            version, status, headers = self._head()
            if status != 100:
                return self._answer(version, status, headers)
        raise NotAnAnswer(f"{INTERIM_MAX} answers of status 100")

    def _answer(self, version: bytes, status: int, headers: Mapping[str, str]) -> Answer:
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if status in BODILESS:
            body = b""
        elif coding is not None:
            if coding.lower() != "chunked":
                raise NotAnAnswer(f"transfer coding {coding!r}")
            body = self._chunks()
        elif length is not None:
            body = self._exactly(_size(length, string.digits))
        else:
            raise NotAnAnswer("a body without a length")
        closes = version != b"HTTP/1.1" or "close" in headers.get("connection", "").lower()
        doubly_framed = coding is not None and length is not None
        # Bytes after a whole answer would be taken for the next answer, so the connection is closed then.
        return Answer(status, headers, body, keeps=not (closes or doubly_framed or self._received))

    def _head(self) -> tuple[bytes, int, Mapping[str, str]]:
        while (end := self._received.find(b"\r\n\r\n")) < 0:
            if len(self._received) > LINE_BYTES_MAX:
                raise NotAnAnswer("a head without an end")
            self._receive()
        start, *lines = self._received[:end].split(b"\r\n")
        self._received = self._received[end + 4 :]
        version, _, rest = start.partition(b" ")
        code = rest[:3]
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or len(code) != 3 or not code.isdigit():
            raise NotAnAnswer(f"it begins with {start[:80]!r}")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.decode("latin-1").partition(":")
            name, value = name.lower(), value.strip()
            if not colon or (name == "content-length" and headers.get(name, value) != value):
                raise NotAnAnswer(f"header {line[:80]!r}")
            headers[name] = value
        return version, int(code), headers

    def _chunks(self) -> bytes:
        body = bytearray()
        while size := _size(self._line().partition(b";")[0].decode("latin-1").strip(), string.hexdigits):
            if len(body) + size > BODY_BYTES_MAX:
                raise NotAnAnswer(f"a body of more than {BODY_BYTES_MAX} bytes")
            body += self._exactly(size)
            if self._exactly(2) != b"\r\n":
                raise NotAnAnswer("a chunk that is longer than it says")
        while self._line():
            pass  # Trailers hold nothing that is needed.
        return bytes(body)

    def _line(self) -> bytes:
        while (end := self._received.find(b"\r\n")) < 0:
            if len(self._received) > LINE_BYTES_MAX:
                raise NotAnAnswer("a line without an end")
            self._receive()
        line, self._received = self._received[:end], self._received[end + 2 :]
        return line

    def _exactly(self, size: int) -> bytes:
        if len(self._received) >= size:
            taken, self._received = self._received[:size], self._received[size:]
            return taken
        whole = bytearray(size)
        at = len(self._received)
        whole[:at] = self._received
        self._received = b""
        with memoryview(whole) as rest:
            while at < size:
                count = self._source.recv_into(rest[at:])
                if not count:
                    raise NotAnAnswer(f"it ended after {at} of {size} bytes")
                at += count
        return bytes(whole)

    def _receive(self) -> None:
        more = self._source.recv(RECEIVE_BYTES)
        if not more:
            raise NotAnAnswer("the connection ended before the answer did")
        self._received += more


def _size(text: str, digits: str) -> int:
    # `int` alone would accept signs, underscores, `0x` and digits of other scripts.
    if not 0 < len(text) <= SIZE_DIGITS_MAX or text.strip(digits):
        raise NotAnAnswer(f"a length of {text[:80]!r}")
    size = int(text, 10 if digits is string.digits else 16)
    if size > BODY_BYTES_MAX:
        raise NotAnAnswer(f"a body of {size} bytes")
    return size
