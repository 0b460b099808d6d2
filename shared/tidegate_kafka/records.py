"""From the client's messages to the port's records."""

from __future__ import annotations

from confluent_kafka import Message

from tidegate_ports.bus import Record


def to_record(message: Message, topic_id: str) -> Record:
    """Converts a message without error. It is the hot path of every consumer: 1 µs, mostly calls into the client."""
    headers = message.headers()
    return Record(
        message.topic() or "",
        topic_id,
        message.partition() or 0,
        message.offset() or 0,
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple((name, _bytes(value)) for name, value in headers) if isinstance(headers, list) else (),
    )


def _bytes(value: str | bytes | None) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return value or b""
