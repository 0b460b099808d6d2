"""Sizes: decimal and binary units."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tidegate_core.language.events.events import DataPartitionEvent
from tidegate_core.language.values.sizes import LARGEST_SIZE_BYTES, SizeField, format_size, parse_size

FIELD: TypeAdapter[int] = TypeAdapter(SizeField)


@given(st.integers(0, LARGEST_SIZE_BYTES))
def test_given_any_size_then_its_text_reads_back(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("text", "size", "shortest"),
    [
        ("100GB", 100_000_000_000, "100GB"),
        ("64MiB", 67_108_864, "64MiB"),
        ("1001B", 1001, "1001B"),
        ("0B", 0, "0B"),
        ("1024 KiB", 1_048_576, "1MiB"),
    ],
)
def test_given_size_then_it_is_read(text: str, size: int, shortest: str) -> None:
    assert parse_size(text) == size
    assert format_size(size) == shortest
    assert FIELD.validate_python(text) == FIELD.validate_python(size) == size


@pytest.mark.parametrize(
    "value", ["100", "100gb", "1.5GB", "-1B", "", "9EiB", -1, 2**63, True, 1.5, 2.0**54, -20.0, None]
)
def test_given_anything_else_then_it_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        FIELD.validate_python(value)


def test_given_a_fraction_of_nothing_then_it_is_the_whole_number() -> None:
    """Writers of JSON that know only floats send 20 bytes as 20.0."""
    assert FIELD.validate_python(20.0) == 20
    event = DataPartitionEvent.model_validate({**DataPartitionEvent.EXAMPLE, "bytes": 20.0, "rows": 7.0})
    assert (event.bytes, event.rows) == (20, 7)
    assert type(event.rows) is int
    with pytest.raises(ValidationError):
        DataPartitionEvent.model_validate({**DataPartitionEvent.EXAMPLE, "rows": 7.5})
