"""Conversion of messages, odd headers included."""

from __future__ import annotations

import pytest
from confluent_kafka import Message

from tidegate_kafka.records import to_record
from tidegate_ports.bus import Record


@pytest.mark.parametrize(
    ("headers", "converted"),
    [
        pytest.param(None, (), id="none"),
        pytest.param([("a", b"1"), ("a", b"2")], (("a", b"1"), ("a", b"2")), id="repeated"),
        pytest.param([("a", None), ("b", "text")], (("a", b""), ("b", b"text")), id="without value, text"),
    ],
)
def test_given_headers_then_they_come_in_order_as_bytes(
    headers: list[tuple[str, str | bytes | None]] | None, converted: tuple[tuple[str, bytes], ...]
) -> None:
    message = Message(topic="t", partition=1, offset=2, key=None, value=b"v", headers=headers, timestamp=(1, 3))
    assert to_record(message, "id") == Record("t", "id", 1, 2, 3, None, b"v", converted)
