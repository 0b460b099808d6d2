"""`every` on a calendar: days, weeks and months at a time of day, through clock changes (SEMANTICS 1.4, 2).

Hours and days of a wall clock, against a walk over the clock itself.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.tier import examples
from tidegate_core.language.time.calendar_periods import CalendarPeriod, PeriodTimes, Unit, period_end, period_start
from tidegate_core.language.time.zones import Zone, zone_named
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


HOUR, DAY = 3_600, 86_400


def span(zone: str, now: str, length: int) -> tuple[str, str]:
    second = parse_instant(now) // 1000
    named = zone_named(zone)
    return (
        format_instant(period_start(named, second, length) * 1000),
        format_instant(period_end(named, second, length) * 1000),
    )


@pytest.mark.parametrize(
    ("zone", "now", "length", "expected"),
    [
        pytest.param("UTC", "2026-03-03T05:59:59Z", HOUR, ("2026-03-03T05:00:00Z", "2026-03-03T06:00:00Z"), id="hour"),
        pytest.param(
            "Asia/Kolkata", "2026-03-03T05:10:00Z", HOUR, ("2026-03-03T04:30:00Z", "2026-03-03T05:30:00Z"), id="half"
        ),
        pytest.param(
            "Europe/Rome", "2026-03-29T12:00:00Z", DAY, ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"), id="23 hours"
        ),
        pytest.param(
            "Europe/Rome", "2026-10-25T12:00:00Z", DAY, ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"), id="25 hours"
        ),
        pytest.param(
            "Europe/Rome", "2026-10-25T00:30:00Z", HOUR, ("2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"), id="1st pass"
        ),
        pytest.param(
            "Europe/Rome", "2026-10-25T01:30:00Z", HOUR, ("2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"), id="2nd pass"
        ),
        pytest.param(
            "Europe/Rome", "2026-03-29T00:30:00Z", HOUR, ("2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"), id="gap"
        ),
        pytest.param(
            "America/Santiago",
            "2026-09-06T12:00:00Z",
            DAY,
            ("2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"),
            id="a day whose midnight is skipped",
        ),
        pytest.param(
            "Australia/Lord_Howe",
            "2026-04-04T15:10:00Z",
            HOUR,
            ("2026-04-04T14:00:00Z", "2026-04-04T15:30:00Z"),
            id="an hour of 90 minutes",
        ),
        pytest.param(
            "Australia/Lord_Howe",
            "2026-04-04T14:40:00Z",
            HOUR,
            ("2026-04-04T14:00:00Z", "2026-04-04T15:30:00Z"),
            id="an hour of 90 minutes, before the clock is put back in it",
        ),
        pytest.param(
            "Atlantic/Azores",
            "2026-10-25T00:30:00Z",
            DAY,
            ("2026-10-25T00:00:00Z", "2026-10-26T01:00:00Z"),
            id="a day whose first hour comes twice, in its first pass",
        ),
        pytest.param(
            "America/Havana",
            "2027-11-07T12:00:00Z",
            DAY,
            ("2027-11-07T04:00:00Z", "2027-11-08T05:00:00Z"),
            id="a day whose first hour comes twice, behind it",
        ),
        pytest.param(
            "America/Havana",
            "2027-11-07T05:30:00Z",
            HOUR,
            ("2027-11-07T05:00:00Z", "2027-11-07T06:00:00Z"),
            id="its first hour in its second pass",
        ),
        pytest.param(
            "Asia/Beirut",
            "2026-10-24T12:00:00Z",
            DAY,
            ("2026-10-23T21:00:00Z", "2026-10-24T22:00:00Z"),
            id="a day whose last hour comes twice",
        ),
    ],
)
def test_given_an_instant_then_its_hour_or_day_is_the_clocks(
    zone: str, now: str, length: int, expected: tuple[str, str]
) -> None:
    assert span(zone, now, length) == expected


@settings(max_examples=examples(150))
@example("Australia/Lord_Howe", parse_instant("2026-04-04T14:40:00Z") // 1000, HOUR)
@given(
    st.sampled_from(
        [
            "Europe/Rome",
            "America/Santiago",
            "Australia/Lord_Howe",
            "America/Havana",
            "Atlantic/Azores",
            "Asia/Beirut",
            "Pacific/Apia",
            "UTC",
        ]
    ),
    st.integers(parse_instant("2011-12-01T00:00:00Z") // 1000, parse_instant("2030-01-01T00:00:00Z") // 1000),
    st.sampled_from([HOUR, DAY]),
)
def test_given_any_instant_then_all_of_its_span_reads_the_same_hour_or_day(zone: str, second: int, length: int) -> None:
    named = zone_named(zone)
    start, end = period_start(named, second, length), period_end(named, second, length)

    assert start <= second < end
    period = _period(named, second, length)
    step = max(60, (end - start) // 200)
    assert all(_period(named, moment, length) == period for moment in range(start, end, step))
    # Whoever asks in it is told of the same span: a rate counts by its end, and looks back by its begin.
    spans = {(period_start(named, each, length), period_end(named, each, length)) for each in range(start, end, step)}
    assert spans == {(start, end)}
    assert _period(named, end - 1, length) == period
    # An hour that is shown twice is two hours; a day is one.
    assert _period(named, start - 1, length) != period or (length == HOUR and named.segment_at(start).start == start)
    assert _period(named, end, length) != period or (length == HOUR and named.segment_at(end).start == end)


@given(
    st.sampled_from(
        [
            ("Atlantic/Azores", "2026-10-25T01:00:00Z"),
            ("America/Havana", "2027-11-07T05:00:00Z"),
            ("Asia/Beirut", "2026-10-24T21:00:00Z"),
            ("America/Santiago", "2026-04-05T03:00:00Z"),
            ("America/Santiago", "2026-09-06T04:00:00Z"),
            ("Europe/Rome", "2026-10-25T01:00:00Z"),
        ]
    ),
    st.integers(-30 * HOUR, 30 * HOUR),
)
def test_given_any_instant_around_a_change_then_its_day_is_all_that_reads_as_it(
    change: tuple[str, str], away: int
) -> None:
    zone, second = zone_named(change[0]), parse_instant(change[1]) // 1000 + away
    day = _period(zone, second, DAY)
    minute = second - second % 60
    reads = [each for each in range(minute - 30 * HOUR, minute + 30 * HOUR, 60) if _period(zone, each, DAY) == day]

    assert (period_start(zone, second, DAY), period_end(zone, second, DAY)) == (reads[0], reads[-1] + 60)


def _period(zone: Zone, second: int, length: int) -> int:
    return (second + zone.segment_at(second).offset) // length
