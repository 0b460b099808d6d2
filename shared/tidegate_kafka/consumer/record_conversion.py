"""From the client's messages to the port's records."""

from __future__ import annotations

from operator import methodcaller

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message

from tidegate_ports.bus import Record

UNREADABLE = (("tidegate.error.headers", b"unreadable"),)
"""Stands for headers that the client cannot convert: any producer may send a name that is not UTF-8."""

_read_headers = methodcaller("headers")
"""For such a name the client returns a list with a hole in it and leaves an exception set. A call from C finds that out and
raises SystemError; the interpreter's own, once it has specialised itself on it, walks on into the hole (CPython 3.11)."""


def to_record(message: Message, topic_id: str) -> Record:
    """Converts a message without error. It is the hot path of every consumer: 1 µs, mostly calls into the client."""
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
        # The record goes on without them. Let out, it would end the client, and the next client, and every other node's.
        return UNREADABLE
    return tuple((name, _bytes(value)) for name, value in headers) if isinstance(headers, list) else ()


def _bytes(value: str | bytes | None) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return value or b""


def size_of(record: Record) -> int:
    """Its bytes: what a record that waits costs, next to which its object hardly counts."""
    size = len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name) + len(value)
    return size
