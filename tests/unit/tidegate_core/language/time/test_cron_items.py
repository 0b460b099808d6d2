"""`H`: a place of the schedule's own, the same each time, and spread over all schedules."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.language.time.cron_fields import CronFields, parse_cron
from tidegate_core.language.time.cron_items import CronError, is_hashed


def of(identity: str, expression: str) -> CronFields:
    return parse_cron(expression, "unix5", None, identity)


@given(st.text(min_size=1, max_size=20))
def test_given_any_schedule_then_its_places_are_in_bounds_and_always_the_same(identity: str) -> None:
    daily, quarters, bounded = (of(identity, text) for text in ("H H H * *", "H/15 0 * * *", "H(10-29)/10 2 * * *"))

    assert len(daily.minutes) == 1
    assert min(daily.days_of_month) <= 28
    assert daily == of(identity, "H H H * *")
    assert [b - a for a, b in zip(quarters.minutes, quarters.minutes[1:], strict=False)] == [15, 15, 15]
    assert all(130 <= minute <= 149 for minute in bounded.minutes)
    assert len(bounded.minutes) == 2


def test_given_many_schedules_then_minutes_are_spread_evenly_and_fields_apart() -> None:
    found = [of(f"flights/s-{number}", "H H * * *").minutes[0] for number in range(6_000)]

    assert max(Counter(minute % 60 for minute in found).values()) < 160, "100 each on average"
    assert len(set(found)) > 1_300, "hour and minute do not hang together"


def test_given_hour_of_its_own_then_it_is_a_fixed_time() -> None:
    assert of("n/a", "0 H * * *").real_cadence is False
    assert of("n/a", "H * * * *").real_cadence is True


@pytest.mark.parametrize(
    ("expression", "column", "hint"),
    [
        ("H(5-70) * * * *", 1, 'nearest valid form: "H * * * *"'),
        ("H(9-5) * * * *", 1, 'nearest valid form: "H * * * *"'),
        ("0 0 H(29-31) * *", 5, 'nearest valid form: "0 0 H * *"'),
        ("H/90 * * * *", 3, "with period 90m"),
        ("H/0 * * * *", 3, 'nearest valid form: "H/1 * * * *"'),
    ],
)
def test_given_a_fault_then_place_and_way_out_are_told(expression: str, column: int, hint: str) -> None:
    with pytest.raises(CronError) as caught:
        of("n/a", expression)

    assert caught.value.column == column
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("H 2 * * *", True),
        ("1,H/15 2 * * *", True),
        ("0 0 * * thu", False),
        ("0 0 * march *", False),
        ("@hourly", False),
    ],
)
def test_given_expression_then_it_is_known_whether_the_schedule_matters(expression: str, expected: bool) -> None:
    assert is_hashed(expression) is expected
