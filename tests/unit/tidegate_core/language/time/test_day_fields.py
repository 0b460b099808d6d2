"""Days of the week as users write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tidegate_core.language.time.day_fields import WEEKDAYS, Weekdays, weekday_of

DAYS: TypeAdapter[tuple[str, ...]] = TypeAdapter(Weekdays)


@pytest.mark.parametrize(
    ("given", "days"),
    [
        pytest.param("mon-fri", ("mon", "tue", "wed", "thu", "fri"), id="range"),
        pytest.param("fri-mon", ("mon", "fri", "sat", "sun"), id="range over the end of the week"),
        pytest.param("sat, sun", ("sat", "sun"), id="text with commas"),
        pytest.param(["Sunday", "MON"], ("mon", "sun"), id="full names, any case, in the order of the week"),
        pytest.param(["mon", "mon-tue"], ("mon", "tue"), id="twice is once"),
        pytest.param("wed", ("wed",), id="one"),
    ],
)
def test_given_days_then_they_are_kept_in_one_form(given: Any, days: tuple[str, ...]) -> None:
    assert DAYS.validate_python(given) == days
    assert DAYS.validate_python(list(days)) == days


@pytest.mark.parametrize("given", ["", [], "weekend", "mon-", "mon-tue-wed", [1], 5, None, ["mon"] * 33])
def test_given_no_days_then_they_are_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        DAYS.validate_python(given)


def test_given_local_time_then_its_day_is_the_calendars() -> None:
    for day in range(20_000, 20_030):
        moment = datetime.fromtimestamp(day * 86_400 + 86_399, UTC)
        assert weekday_of(day * 86_400 + 86_399) == WEEKDAYS[moment.weekday()]
