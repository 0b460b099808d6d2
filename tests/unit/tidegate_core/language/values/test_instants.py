"""Instants: RFC 3339 in and out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tidegate_core.language.values.instants import (
    LATEST_INSTANT,
    InstantField,
    as_datetime,
    format_instant,
    from_datetime,
    parse_instant,
)

FIELD: TypeAdapter[int] = TypeAdapter(InstantField)


@given(st.integers(0, LATEST_INSTANT))
def test_given_any_instant_then_its_text_reads_back(instant: int) -> None:
    assert parse_instant(format_instant(instant)) == instant
    assert from_datetime(as_datetime(instant)) == instant
    assert FIELD.validate_python(FIELD.dump_python(instant)) == instant


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-11-20T22:00:00Z", 1_795_212_000_000),
        ("2026-11-20T23:00:00+01:00", 1_795_212_000_000),
        ("2026-11-20t17:00:00-05:00", 1_795_212_000_000),
        ("2026-11-20 22:00:00z", 1_795_212_000_000),
        ("2026-11-20T22:00:00.25Z", 1_795_212_000_250),
    ],
)
def test_given_rfc_3339_then_it_is_read(text: str, instant: int) -> None:
    assert parse_instant(text) == instant


def test_given_finer_fraction_then_it_is_rounded_up_and_never_early() -> None:
    assert parse_instant("1970-01-01T00:00:00.0001Z") == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2026-11-20T22:00:00", "no offset"),
        ("2026-02-30T22:00:00Z", "names no date"),
        ("2026-11-20T24:00:00Z", "names no date"),
        ("2026-11-20", "not an RFC 3339"),
        ("2026-W47-5T22:00:00Z", "not an RFC 3339"),
        ("20261120T220000Z", "not an RFC 3339"),
        ("tomorrow", "not an RFC 3339"),
        ("", "not an RFC 3339"),
        ("1969-12-31T23:59:59Z", "outside"),
        ("2300-01-01T00:00:00Z", "outside"),
        ("٢٠٢٦-11-20T22:00:00Z", "not an RFC 3339"),
    ],
)
def test_given_anything_else_then_the_reason_is_told(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_instant(text)


def test_given_datetimes_then_aware_ones_are_read() -> None:
    rome = timezone(timedelta(hours=1))

    assert from_datetime(datetime(1970, 1, 1, 1, tzinfo=rome)) == 0
    assert from_datetime(datetime(1970, 1, 2, tzinfo=UTC)) == 86_400_000
    with pytest.raises(ValueError, match="no offset"):
        from_datetime(datetime(2026, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize("value", [0, 1.5, None, True, datetime(2026, 1, 1, tzinfo=UTC), b"2026-11-20T22:00:00Z"])
def test_given_anything_but_a_text_then_it_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        FIELD.validate_python(value)
