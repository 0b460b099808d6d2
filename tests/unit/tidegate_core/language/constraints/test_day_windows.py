"""Windows with days, and several windows in one constraint, against a walk over the clock minute by minute."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.tier import examples
from tidegate_core.language.constraints import Allow, Facts, Hold, TimeWindowConstraint
from tidegate_core.language.time.day_fields import WEEKDAYS, weekday_of
from tidegate_core.language.time.zones import zone_named
from tidegate_core.language.values.instants import format_instant, parse_instant

MINUTE_MS = 60_000


def windows(*several: dict[str, Any], zone: str = "UTC") -> TimeWindowConstraint:
    return TimeWindowConstraint.model_validate({"type": "time_window", "windows": list(several), "zone": zone})


def window(opens: str, closes: str, days: Any = None, zone: str = "UTC") -> TimeWindowConstraint:
    fields = {"type": "time_window", "opens": opens, "closes": closes, "zone": zone}
    return TimeWindowConstraint.model_validate(fields if days is None else {**fields, "days": days})


def opening(constraint: TimeWindowConstraint, now: str) -> str | None:
    """When it opens, None when it is open."""
    verdict = constraint.check(Facts(now=parse_instant(now), satisfied_at=0))
    if isinstance(verdict, Allow):
        return None
    assert verdict.until is not None
    return format_instant(verdict.until)


FRIDAY_NIGHT = window("22:00", "06:00", "fri")


@pytest.mark.parametrize(
    ("now", "opens"),
    [
        pytest.param("2026-03-06T21:59:59Z", "2026-03-06T22:00:00Z", id="friday, before it opens"),
        pytest.param("2026-03-06T22:00:00Z", None, id="friday, open"),
        pytest.param("2026-03-07T05:59:59Z", None, id="saturday morning belongs to friday"),
        pytest.param("2026-03-07T06:00:00Z", "2026-03-13T22:00:00Z", id="closed for a week"),
        pytest.param("2026-03-07T23:00:00Z", "2026-03-13T22:00:00Z", id="saturday night is another day"),
        pytest.param("2026-03-06T03:00:00Z", "2026-03-06T22:00:00Z", id="friday morning belongs to thursday"),
    ],
)
def test_given_days_then_the_day_of_the_opening_counts(now: str, opens: str | None) -> None:
    """CD-083, US-07: also over midnight."""
    assert opening(FRIDAY_NIGHT, now) == opens


def test_given_several_windows_then_one_that_is_open_suffices_and_the_next_opening_is_the_first() -> None:
    constraint = windows({"opens": "22:00", "closes": "02:00"}, {"opens": "12:00", "closes": "13:00", "days": "sun"})
    assert opening(constraint, "2026-03-08T11:00:00Z") == "2026-03-08T12:00:00Z"  # a Sunday
    assert opening(constraint, "2026-03-08T12:30:00Z") is None
    assert opening(constraint, "2026-03-08T13:00:00Z") == "2026-03-08T22:00:00Z"
    assert opening(constraint, "2026-03-09T11:00:00Z") == "2026-03-09T22:00:00Z"
    assert opening(constraint, "2026-03-09T01:59:00Z") is None


def test_given_the_24_hours_of_a_day_then_they_follow_the_clock_through_its_change() -> None:
    sunday = window("00:00", "00:00", "sun", "Europe/Rome")
    assert opening(sunday, "2026-03-28T22:59:59Z") == "2026-03-28T23:00:00Z"
    assert opening(sunday, "2026-03-29T21:59:59Z") is None
    assert opening(sunday, "2026-03-29T22:00:00Z") == "2026-04-04T22:00:00Z"


def test_given_a_window_that_vanishes_on_its_day_then_it_is_open_after_the_change_on_that_day_only() -> None:
    assert opening(window("02:10", "02:50", "sun", "Europe/Rome"), "2026-03-29T01:39:59Z") is None
    assert opening(window("02:10", "02:50", "sat", "Europe/Rome"), "2026-03-29T01:39:59Z") == "2026-04-04T00:10:00Z"


def test_given_several_windows_then_the_reason_names_them_with_the_values() -> None:
    constraint = windows({"opens": "22:00", "closes": "02:00"}, {"opens": "12:00", "closes": "13:00", "days": "sun"})
    verdict = constraint.check(Facts(now=parse_instant("2026-03-09T11:00:00Z"), satisfied_at=0))
    assert isinstance(verdict, Hold)
    assert verdict.reason == "the windows 22:00-02:00 and 12:00-13:00 sun UTC open at 2026-03-09T22:00:00Z"
    assert verdict.values["opens_at"] == "2026-03-09T22:00:00Z"


times = st.integers(0, 95).map(lambda quarter: f"{quarter // 4:02d}:{quarter % 4 * 15:02d}")
a_window = st.fixed_dictionaries(
    {"opens": times, "closes": times, "days": st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=4)}
)


@settings(max_examples=examples(60))
@given(
    st.lists(a_window, min_size=1, max_size=3),
    st.integers(parse_instant("2026-03-20T00:00:00Z"), parse_instant("2026-11-01T00:00:00Z")),
    st.sampled_from(["Europe/Rome", "America/New_York", "Australia/Lord_Howe", "America/Santiago"]),
)
def test_given_any_windows_then_they_open_exactly_when_the_clock_says_so(
    several: list[dict[str, Any]], now: int, zone: str
) -> None:
    constraint = windows(*several, zone=zone)
    now -= now % (15 * MINUTE_MS)
    verdict = constraint.check(Facts(now=now, satisfied_at=0))
    moment = now
    while not _reads_open(several, zone, moment) and moment < now + 9 * 24 * 60 * MINUTE_MS:
        moment += 15 * MINUTE_MS
    until = now if isinstance(verdict, Allow) else verdict.until
    # A window that a change skips as a whole is open after it, which the plain reading of the clock does not know.
    assert until == moment or (until is not None and until < moment and _follows_a_gap(zone, until))


def _reads_open(several: list[dict[str, Any]], zone: str, now: int) -> bool:
    """By the local time alone: whether it lies in a window that opened today, or yesterday over midnight."""
    wall = now // 1000 + zone_named(zone).segment_at(now // 1000).offset
    for each in several:
        opens, closes = (int(each[name][:2]) * 60 + int(each[name][3:]) for name in ("opens", "closes"))
        minute = wall // 60 % 1440
        length = (closes - opens) % 1440 or 1440
        for day, start in ((wall, opens), (wall - 86_400, opens - 1440)):
            if weekday_of(day) in each["days"] and start <= minute < start + length:
                return True
    return False


def _follows_a_gap(zone: str, now: int) -> bool:
    segment = zone_named(zone).segment_at(now // 1000)
    return segment.offset > segment.offset_before and now // 1000 - segment.start < 3 * 3600


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param({}, "is missing", id="nothing"),
        pytest.param({"opens": "22:00"}, "is missing", id="half"),
        pytest.param({"opens": "22:00", "closes": "06:00", "windows": [{"opens": "1"}]}, "time of day", id="faulty"),
        pytest.param(
            {"opens": "22:00", "windows": [{"opens": "10:00", "closes": "11:00"}]},
            "must not be given with windows",
            id="both",
        ),
        pytest.param({"windows": []}, "at least 1", id="no windows"),
        pytest.param({"windows": [{"opens": "10:00", "closes": "11:00"}] * 17}, "at most 16", id="too many"),
        pytest.param({"windows": [{"opens": "10:00", "closes": "10:00"}]}, "equals opens", id="24 hours every day"),
        pytest.param({"opens": "10:00", "closes": "11:00", "days": []}, "names no days", id="no days"),
    ],
)
def test_given_half_a_window_then_it_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        TimeWindowConstraint.model_validate({"type": "time_window", **fields})


def test_given_a_window_of_an_older_version_then_its_stored_form_is_the_same() -> None:
    """Its hash too: applying it again changes nothing."""
    stored = '{"closes":"06:00","on_unmet":"wait","opens":"22:00","type":"time_window","zone":"UTC"}'
    assert TimeWindowConstraint.model_validate_json(stored).canonical_json() == stored
