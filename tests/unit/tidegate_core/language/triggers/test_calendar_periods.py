"""`every` on a calendar: days, weeks and months at a time of day, through clock changes (SEMANTICS 1.4, 2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tidegate_core.language.time.calendar_periods import CalendarPeriod, PeriodTimes, Unit
from tidegate_core.language.triggers import EveryTrigger
from tidegate_core.language.values.instants import LATEST_INSTANT, format_instant, parse_instant


def every(**fields: Any) -> EveryTrigger:
    return EveryTrigger.model_validate({"type": "every", **fields})


def fires(trigger: EveryTrigger, after: str, count: int) -> list[str]:
    found, instant = list[str](), parse_instant(after)
    for _ in range(count):
        following = trigger.next_after(instant, "n/a")
        assert following is not None
        found.append(format_instant(following)[:16])
        instant = following
    return found


def test_given_days_then_they_are_local_days_through_the_gap() -> None:
    trigger = every(period={"days": 1}, at="02:30", zone="Europe/Rome")

    assert fires(trigger, "2026-03-27T12:00:00Z", 3) == ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]
    begin, end = trigger.interval(parse_instant("2026-03-29T01:00:00Z"), "n/a")
    assert end - begin == 23 * 3_600_000 + 30 * 60_000


def test_given_policies_then_they_hold() -> None:
    trigger = every(period={"days": 1}, at="02:30", zone="Europe/Rome", dst_gap="skip", dst_overlap="last")

    assert fires(trigger, "2026-03-28T12:00:00Z", 1) == ["2026-03-30T00:30"]
    assert fires(trigger, "2026-10-24T12:00:00Z", 1) == ["2026-10-25T01:30"]


def test_given_no_start_then_the_anchor_is_the_first_of_january_1970_a_thursday() -> None:
    assert fires(every(period={"weeks": 1}), "2026-01-01T12:00:00Z", 2) == ["2026-01-08T00:00", "2026-01-15T00:00"]
    assert fires(every(period={"days": 2}), "1970-01-01T00:00:00Z", 2) == ["1970-01-03T00:00", "1970-01-05T00:00"]


def test_given_start_then_its_local_date_is_the_anchor() -> None:
    fortnight = every(period={"weeks": 2}, at="02:30", zone="Europe/Rome", start="2027-01-01T00:00:00+01:00")

    assert fires(fortnight, "2026-01-01T00:00:00Z", 2) == ["2027-01-01T01:30", "2027-01-15T01:30"]
    first = parse_instant("2027-01-01T01:30:00Z")
    assert fortnight.interval(first, "n/a")[0] == first - 14 * 86_400_000


def test_given_months_from_the_31st_then_short_ones_have_their_last_day() -> None:
    monthly = every(period={"months": 1}, start="2027-01-31T00:00:00Z")

    assert [text[:10] for text in fires(monthly, "2027-01-30T00:00:00Z", 4)] == [
        "2027-01-31",
        "2027-02-28",
        "2027-03-31",
        "2027-04-30",
    ]


@given(
    st.sampled_from(["days", "weeks", "months"]),
    st.integers(1, 40),
    st.integers(-10_000, 30_000),
    st.integers(0, 86_399),
    st.integers(0, LATEST_INSTANT // 1000),
)
def test_given_any_period_then_next_and_previous_are_inverse(
    unit: Unit, count: int, anchor: int, second: int, wall: int
) -> None:
    times = PeriodTimes(CalendarPeriod(unit, count), anchor, second)
    following = times.next_wall(wall)
    preceding = times.previous_wall(wall)

    assert following is not None
    assert preceding is not None
    assert preceding < wall < following or times.previous_wall(following) == wall
    assert times.next_wall(following - 1) == following
    assert times.previous_wall(preceding + 1) == preceding


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"period": {"days": 0}}, "from 1 to 3650"),
        ({"period": {"days": 1.5}}, "from 1 to 3650"),
        ({"period": {"months": True}}, "from 1 to 120"),
        ({"period": {"days": 1, "weeks": 1}}, "not one of days, weeks or months"),
        ({"period": {"hours": 1}}, "not one of days, weeks or months"),
        ({"period": {}}, "not one of days, weeks or months"),
        ({"period": {"days": 1}, "phase": "1h"}, "belongs to elapsed time"),
        ({"period": {"days": 1}, "at": 230}, "not a time of day"),
        ({"period": "90m", "at": "02:30"}, "no meaning for elapsed time"),
        ({"period": "90m", "zone": "Europe/Rome"}, "no meaning for elapsed time"),
        ({"period": "90m", "dst_gap": "skip"}, "no meaning for elapsed time"),
    ],
)
def test_given_a_fault_then_it_is_refused(fields: dict[str, Any], part: str) -> None:
    with pytest.raises(ValidationError, match=part):
        every(**fields)


def test_given_stored_form_then_it_reads_back() -> None:
    trigger = every(period={"weeks": 2}, at="02:30", zone="Europe/Rome")

    assert EveryTrigger.model_validate_json(trigger.canonical_json()) == trigger
    assert '"period":{"weeks":2}' in trigger.canonical_json()
