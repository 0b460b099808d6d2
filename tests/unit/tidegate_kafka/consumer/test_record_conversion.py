"""Conversion of messages, odd headers included."""

from __future__ import annotations

import pytest
from confluent_kafka import Message

from tidegate_kafka.consumer.record_conversion import UNREADABLE, size_of, to_record
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
    assert to_record(message, "id") == Record("t", "id", 1, 2, 3, None, b"v", converted, timed_by_broker=False)


class Poisoned:
    """What the client hands over when a header's name is not UTF-8: everything can be read but the headers."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure
        self._asked = 0

    def headers(self) -> object:
        self._asked += 1
        assert self._asked == 1, "the client caches what it could not convert: a second look is not safe"
        raise self._failure

    def __getattr__(self, name: str) -> object:
        facts = {"topic": "t", "partition": 1, "offset": 2, "key": None, "value": b"v", "timestamp": (1, 3)}
        return lambda: facts[name]


@pytest.mark.parametrize(
    "failure",
    [SystemError("returned a result with an exception set"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid")],
    ids=["first", "later"],
)
def test_given_headers_that_cannot_be_read_then_the_record_says_so_and_goes_on(failure: Exception) -> None:
    record = to_record(Poisoned(failure), "id")  # type: ignore[arg-type]  # Python makes no such message itself
    assert record == Record("t", "id", 1, 2, 3, None, b"v", UNREADABLE, timed_by_broker=False)


def test_given_a_record_then_its_size_counts_all_its_bytes() -> None:
    assert size_of(Record("t", "id", 1, 2, 3, b"key", b"value", (("ab", b"c"), ("d", b"")))) == 12
    assert size_of(Record("t", "id", 1, 2, 3, None, None, ())) == 0
