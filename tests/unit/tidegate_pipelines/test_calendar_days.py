from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from tidegate_pipelines.calendar_days import DAYS_MAX, day_of, days

START = datetime(2026, 3, 3, 5, 0, 0, tzinfo=UTC)
PERIOD = timedelta(seconds=8)


@pytest.mark.parametrize(
    ("place", "day"),
    [
        pytest.param(0, date(2013, 1, 1), id="the first instant"),
        pytest.param(1, date(2013, 1, 2), id="the second"),
        pytest.param(306, date(2013, 11, 3), id="the day of 25 hours counts once"),
        pytest.param(DAYS_MAX - 1, date(2013, 12, 30), id="the last day with weather"),
    ],
)
def test_given_the_nth_instant_then_it_stands_for_the_nth_day(place: int, day: date) -> None:
    assert day_of(START + place * PERIOD, START, PERIOD) == day


@pytest.mark.parametrize(
    "nominal",
    [
        pytest.param(START - PERIOD, id="before the start"),
        pytest.param(START + timedelta(seconds=4), id="between two"),
        pytest.param(START + DAYS_MAX * PERIOD, id="31 December has no weather"),
    ],
)
def test_given_an_instant_without_a_day_then_it_is_refused(nominal: datetime) -> None:
    with pytest.raises(ValueError, match="no occurrence"):
        day_of(nominal, START, PERIOD)


def test_given_a_count_then_days_follow_each_other() -> None:
    assert days(3) == (date(2013, 1, 1), date(2013, 1, 2), date(2013, 1, 3))
    assert len(set(days(DAYS_MAX))) == DAYS_MAX


@pytest.mark.parametrize("count", [0, 365])
def test_given_a_count_beyond_the_data_then_it_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="31 December"):
        days(count)
