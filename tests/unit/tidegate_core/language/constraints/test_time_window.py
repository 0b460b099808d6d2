"""The window on a wall clock, through midnight and clock changes (SEMANTICS 2.5)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.tier import examples
from tidegate_core.language.constraints import Allow, Facts, Hold, TimeWindowConstraint, Verdict
from tidegate_core.language.values.instants import as_datetime, format_instant, parse_instant

HOUR_MS = 3_600_000


def window(opens: str, closes: str, zone: str = "UTC") -> TimeWindowConstraint:
    return TimeWindowConstraint.model_validate({"type": "time_window", "opens": opens, "closes": closes, "zone": zone})


def verdict_at(constraint: TimeWindowConstraint, now: int) -> Verdict:
    return constraint.check(Facts(now=now, satisfied_at=now))


def opening(constraint: TimeWindowConstraint, now: str) -> str | None:
    """When the window opens, None when it is open."""
    match verdict_at(constraint, parse_instant(now)):
        case Allow():
            return None
        case Hold(until=until, reason_code="window_closed") if until is not None:
            return format_instant(until)
    raise AssertionError("a closed window always says when it opens")


NIGHT = window("22:00", "06:00")


@pytest.mark.parametrize(
    ("now", "opens"),
    [
        pytest.param("2026-03-03T05:59:59.999Z", None, id="after midnight is inside"),
        pytest.param("2026-03-03T06:00:00Z", "2026-03-03T22:00:00Z", id="closing is outside"),
        pytest.param("2026-03-03T21:59:59.999Z", "2026-03-03T22:00:00Z", id="just before opening"),
        pytest.param("2026-03-03T22:00:00Z", None, id="opening is inside"),
    ],
)
def test_given_window_over_midnight_then_job_waits_for_opening(now: str, opens: str | None) -> None:
    assert opening(NIGHT, now) == opens


def test_given_zone_then_its_wall_clock_counts() -> None:
    rome = window("08:00", "09:00", "Europe/Rome")

    assert opening(rome, "2026-07-01T06:30:00Z") is None
    assert opening(rome, "2026-07-01T07:00:00Z") == "2026-07-02T06:00:00Z"
    assert opening(rome, "2026-01-01T07:30:00Z") is None


@pytest.mark.parametrize(
    ("opens", "closes", "now", "expected"),
    [
        pytest.param(
            "02:30", "05:00", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", id="opening in the gap: at its end"
        ),
        pytest.param(
            "01:00", "02:30", "2026-03-29T01:00:00Z", "2026-03-29T23:00:00Z", id="closing in the gap: closed after"
        ),
        pytest.param(
            "02:10", "02:50", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z", id="vanished: opens at the change"
        ),
        pytest.param("02:10", "02:50", "2026-03-29T01:39:59Z", None, id="vanished: open for its length"),
        pytest.param("02:10", "02:50", "2026-03-29T01:40:00Z", "2026-03-30T00:10:00Z", id="vanished: then closed"),
        pytest.param("02:00", "02:30", "2026-10-25T00:15:00Z", None, id="first pass is inside"),
        pytest.param(
            "02:00", "02:30", "2026-10-25T00:45:00Z", "2026-10-25T01:00:00Z", id="between the passes is outside"
        ),
        pytest.param("02:00", "02:30", "2026-10-25T01:15:00Z", None, id="second pass is inside"),
    ],
)
def test_given_clock_change_then_window_follows_the_wall_clock(
    opens: str, closes: str, now: str, expected: str | None
) -> None:
    assert opening(window(opens, closes, "Europe/Rome"), now) == expected


@settings(max_examples=examples(60))
@given(
    st.integers(0, 1439),
    st.integers(1, 1439),
    st.integers(parse_instant("2026-03-26T00:00:00Z"), parse_instant("2026-11-01T00:00:00Z")),
    st.sampled_from(["Europe/Rome", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
)
def test_given_closed_window_then_it_is_closed_until_exactly_its_opening(
    opens: int, length: int, now: int, zone: str
) -> None:
    closes = (opens + length) % 1440
    constraint = window(f"{opens // 60:02d}:{opens % 60:02d}", f"{closes // 60:02d}:{closes % 60:02d}", zone)
    verdict = verdict_at(constraint, now)
    if isinstance(verdict, Allow):
        return

    assert verdict.until is not None
    assert now < verdict.until <= now + 26 * HOUR_MS
    assert verdict_at(constraint, verdict.until) == Allow()
    step = timedelta(minutes=7) // timedelta(milliseconds=1)
    assert all(verdict_at(constraint, moment) == verdict for moment in range(now, verdict.until, step)), as_datetime(
        now
    )


def test_given_hold_then_reason_says_when_and_where() -> None:
    verdict = verdict_at(window("22:00", "06:00", "Europe/Rome"), parse_instant("2026-07-01T10:00:00Z"))

    assert verdict == Hold(
        until=parse_instant("2026-07-01T20:00:00Z"),
        reason_code="window_closed",
        reason="the window 22:00-06:00 Europe/Rome opens at 2026-07-01T20:00:00Z",
        values={"windows": "22:00-06:00", "zone": "Europe/Rome", "opens_at": "2026-07-01T20:00:00Z"},
    )


def test_given_window_then_it_needs_no_permit() -> None:
    assert NIGHT.limit(None) is None  # type: ignore[arg-type]  # who asks plays no part


@pytest.mark.parametrize("time", ["24:00", "22", "22:60", 1320, "", None, "2:00"])
def test_given_no_time_of_day_then_it_is_refused(time: Any) -> None:
    with pytest.raises(ValidationError):
        TimeWindowConstraint.model_validate({"type": "time_window", "opens": time, "closes": "06:00"})


def test_given_window_without_length_then_it_is_refused() -> None:
    with pytest.raises(ValidationError, match="equals opens"):
        window("06:00", "06:00")
