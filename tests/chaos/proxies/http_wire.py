"""As much of HTTP/1.1 as DynamoDB's clients and DynamoDB Local speak: whole messages, bodies of a length or in chunks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

LINE_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 32 * 1024 * 1024
"""DynamoDB's largest answer is 16 MB."""
HEADERS_MAX = 200
TARGET = "x-amz-target"


class NotHttp(Exception):
    """What came is no message of HTTP/1.1, or ended in its middle."""


@dataclass(frozen=True, slots=True)
class HttpMessage:
    """A request or an answer, read whole.

    Attributes:
        start: The first line, without its end.
        headers: In their order; names as they came.
        body: Without transfer coding.
    """

    start: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """Returns a header's value; `name` in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), None)

    @property
    def operation(self) -> str:
        """DynamoDB's operation, such as `PutItem`; empty where none is named."""
        return (self.header(TARGET) or "").rpartition(".")[2]

    @property
    def closes(self) -> bool:
        """Whether the connection ends behind this message."""
        return (self.header("connection") or "").lower() == "close"

    def encoded(self) -> bytes:
        """Returns it as bytes, its body with a length."""
        kept = [(k, v) for k, v in self.headers if k.lower() not in ("content-length", "transfer-encoding")]
        lines = [self.start, *(f"{k}: {v}" for k, v in kept), f"Content-Length: {len(self.body)}", "", ""]
        return "\r\n".join(lines).encode("latin-1") + self.body


def answer(status: str, body: bytes, content_type: str = "application/x-amz-json-1.0") -> HttpMessage:
    """Returns an answer of our own; `status` such as `400 Bad Request`."""
    return HttpMessage(f"HTTP/1.1 {status}", (("Content-Type", content_type),), body)


async def read_message(reader: asyncio.StreamReader) -> HttpMessage | None:
    """Returns the next message, or None where the peer ended the connection before it.

    Raises:
        NotHttp: It ended within one, or what came is something else.
        ConnectionError: The connection broke.
    """
    start = await _line(reader)
    if not start:
        return None
    headers: list[tuple[str, str]] = []
    while line := await _line(reader):
        name, colon, value = line.partition(":")
        if not colon or len(headers) >= HEADERS_MAX:
            raise NotHttp(f"header {line[:80]!r}")
        headers.append((name.strip(), value.strip()))
    message = HttpMessage(start, tuple(headers), b"")
    return HttpMessage(start, message.headers, await _body(reader, message))


async def _body(reader: asyncio.StreamReader, message: HttpMessage) -> bytes:
    try:
        if (message.header("transfer-encoding") or "").lower() == "chunked":
            return await _chunks(reader)
        length = int(message.header("content-length") or "0")
        if not 0 <= length <= BODY_BYTES_MAX:
            raise NotHttp(f"a body of {length} bytes")
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ValueError) as cut:
        raise NotHttp(f"body: {cut}") from cut


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await _line(reader)).partition(";")[0], 16):
        if size < 0 or len(body) + size > BODY_BYTES_MAX:
            raise NotHttp(f"a chunk of {size} bytes")
        body += await reader.readexactly(size)
        await _line(reader)
    while await _line(reader):
        pass  # Trailers say nothing that we need.
    return bytes(body)


async def _line(reader: asyncio.StreamReader) -> str:
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as cut:
        if cut.partial:
            raise NotHttp(f"ended in {cut.partial[:80]!r}") from cut
        return ""
    except asyncio.LimitOverrunError as long:
        raise NotHttp("a line without an end") from long
    return line.decode("latin-1").rstrip("\r\n")
