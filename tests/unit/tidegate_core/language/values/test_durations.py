"""Durations: texts with units, ISO 8601, and one stored form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tidegate_core.language.values.durations import LONGEST_DURATION_MS, DurationField, format_duration, parse_duration

FIELD: TypeAdapter[int] = TypeAdapter(DurationField)
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


@given(st.integers(0, LONGEST_DURATION_MS))
def test_given_any_duration_then_its_text_reads_back(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    ("text", "milliseconds", "stored"),
    [
        ("90s", 90 * SECOND, "90s"),
        ("15m", 15 * MINUTE, "15m"),
        ("4h", 4 * HOUR, "4h"),
        ("7d", 7 * DAY, "7d"),
        ("24h", DAY, "1d"),
        ("60s", MINUTE, "1m"),
        ("0s", 0, "0s"),
        ("250ms", 250, "250ms"),
        ("1h30m", 90 * MINUTE, "90m"),
        ("1d2h3m4s5ms", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 5, "93784005ms"),
        ("PT90M", 90 * MINUTE, "90m"),
        ("P1DT12H", 36 * HOUR, "36h"),
        ("P2W", 14 * DAY, "14d"),
        ("PT0.25S", 250, "250ms"),
    ],
)
def test_given_duration_then_it_is_read_and_stored_in_one_form(text: str, milliseconds: int, stored: str) -> None:
    assert parse_duration(text) == milliseconds
    assert FIELD.dump_python(FIELD.validate_python(text)) == stored


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not a duration"),
        ("90", "is not a duration"),
        ("1.5h", "is not a duration"),
        ("30m1h", "is not a duration"),
        ("-5m", "is not a duration"),
        ("5 minutes", "is not a duration"),
        ("P", "ISO 8601"),
        ("PT", "ISO 8601"),
        ("P1Y", "length varies"),
        ("P1M", "length varies"),
        ("4000d", "longer than ten years"),
        ("999999999999999d", "longer than ten years"),
    ],
)
def test_given_anything_else_then_the_reason_is_told(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_duration(text)


@pytest.mark.parametrize("value", [90, 1.5, None, True, {"days": 1}])
def test_given_number_without_unit_then_it_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        FIELD.validate_python(value)
