"""Hours and days of a wall clock, against a walk over the clock itself."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.tier import examples
from tidegate_core.language.time.periods import period_end, period_start
from tidegate_core.language.time.zones import Zone, zone_named
from tidegate_core.language.values.instants import format_instant, parse_instant

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
