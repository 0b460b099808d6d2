"""Converts the client's messages to the port's records."""

from __future__ import annotations

from operator import methodcaller

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message

from tidegate_ports.bus import Record

UNREADABLE = (("tidegate.error.headers", b"unreadable"),)
"""Replacement for headers that the client cannot convert: any producer may send a header name that is not UTF-8."""

_read_headers = methodcaller("headers")
"""Reads headers through a call from C. For a name that is not UTF-8 the client returns a list with a NULL entry and
leaves an exception set. A call from C detects that and raises SystemError. The interpreter's specialised call does not,
and crashes on the entry (CPython 3.11)."""


def to_record(message: Message, topic_id: str) -> Record:
    """Converts a message that has no error. This is every consumer's hot path: 1 µs, mostly calls into the client."""
    kind, at = message.timestamp()
    return Record(
        message.topic() or "",
        topic_id,
        message.partition() or 0,
        message.offset() or 0,
        at,
        message.key(),
        message.value(),
        _headers(message),
        kind == TIMESTAMP_LOG_APPEND_TIME,
    )


def _headers(message: Message) -> tuple[tuple[str, bytes], ...]:
    try:
        headers = _read_headers(message)
    except (SystemError, UnicodeDecodeError):
        # Pass the record on without headers. An exception here would end this client, each new client, and so on every
        # node.
        return UNREADABLE
    return tuple((name, _bytes(value)) for name, value in headers) if isinstance(headers, list) else ()


def _bytes(value: str | bytes | None) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return value or b""


def size_of(record: Record) -> int:
    """Returns a record's bytes: the cost of a record that waits. The Python object itself hardly counts."""
    size = len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name) + len(value)
    return size
