"""What a time trigger leaves out is no occurrence; the data interval of the next one reaches back over it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tidegate_core.language.triggers import CronTrigger, EveryTrigger, Trigger
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.instants import format_instant, parse_instant

ANY: TypeAdapter[Any] = TypeAdapter(Trigger)
CHRISTMAS = {"type": "cron", "expression": "* * 25 12 *"}


def cron(*exclude: dict[str, Any], **fields: Any) -> CronTrigger:
    document = {"type": "cron", "expression": "0 6 * * *", "zone": "Europe/Rome", "exclude": list(exclude), **fields}
    return CronTrigger.model_validate(document)


def fires(trigger: TimeTrigger, after: str, count: int) -> list[str]:
    found, instant = list[str](), parse_instant(after)
    for _ in range(count):
        following = trigger.next_after(instant, "n/a")
        assert following is not None
        found.append(format_instant(following)[:16])
        instant = following
    return found


@pytest.mark.parametrize(
    "exclusion",
    [
        pytest.param(CHRISTMAS, id="each minute of the day"),
        pytest.param({"type": "cron", "expression": "0 6 25 12 *"}, id="its minute"),
        pytest.param({"type": "dates", "first": "2026-12-25"}, id="a date"),
        pytest.param({"type": "cron", "expression": "0 * * ? 12 6#4", "dialect": "quartz"}, id="quartz"),
    ],
)
def test_given_excluded_day_then_it_is_no_occurrence(exclusion: dict[str, Any]) -> None:
    trigger = cron(exclusion)

    assert fires(trigger, "2026-12-23T12:00:00Z", 2) == ["2026-12-24T05:00", "2026-12-26T05:00"]
    assert trigger.excluded_at(parse_instant("2026-12-25T05:00:00Z")) is not None
    begin, end = trigger.interval(parse_instant("2026-12-26T05:00:00Z"), "n/a")
    assert end - begin == 48 * 3_600_000


def test_given_dates_then_both_ends_are_left_out_in_the_triggers_zone() -> None:
    trigger = cron({"type": "dates", "first": "2026-12-24", "last": "2027-01-06"}, expression="0 0 * * *")

    assert fires(trigger, "2026-12-22T12:00:00Z", 2) == ["2026-12-22T23:00", "2027-01-06T23:00"]


def test_given_zone_of_its_own_then_its_days_are_meant() -> None:
    trigger = cron({"type": "dates", "first": "2026-12-25", "zone": "Asia/Tokyo"}, expression="0 17 * * *")

    assert fires(trigger, "2026-12-23T12:00:00Z", 2) == ["2026-12-23T16:00", "2026-12-25T16:00"]


def test_given_expression_without_seconds_then_the_whole_minute_is_out() -> None:
    trigger = cron({"type": "cron", "expression": "5 * * * *"}, expression="*/30 4-6 * * * *", dialect="unix6")

    assert fires(trigger, "2026-01-01T00:04:00Z", 3) == ["2026-01-01T00:04", "2026-01-01T00:06", "2026-01-01T00:06"]


def test_given_elapsed_time_then_days_are_those_of_utc() -> None:
    trigger = EveryTrigger.model_validate(
        {"type": "every", "period": "12h", "exclude": [{"type": "dates", "first": "2026-01-02"}]}
    )

    assert fires(trigger, "2026-01-01T06:00:00Z", 2) == ["2026-01-01T12:00", "2026-01-03T00:00"]


def test_given_years_of_minutes_left_out_then_days_are_passed_over_in_one_step() -> None:
    trigger = cron({"type": "cron", "expression": "* * * 1-11 *"}, expression="* * * * *")

    assert fires(trigger, "2026-01-01T00:00:00Z", 1) == ["2026-11-30T23:00"]


@pytest.mark.parametrize(("first", "second"), [("* 0-11", "* 12-23"), ("*/2 *", "1-59/2 *")])
def test_given_exclusions_that_are_a_day_together_then_it_is_passed_over_in_one_step(first: str, second: str) -> None:
    """Minute by minute, with so many holidays beside it, the search would end before the third day is over."""
    holidays = [{"type": "dates", "first": f"20{year}-01-01"} for year in range(28, 76)]
    days = [{"type": "cron", "expression": f"{minutes} 25-27 11 *"} for minutes in (first, second)]
    trigger = cron(*holidays, *days, expression="* * * * *")

    assert fires(trigger, "2026-11-24T22:58:00Z", 2) == ["2026-11-24T22:59", "2026-11-27T23:00"]
    assert trigger.excluded_at(parse_instant("2026-11-25T12:00:00Z")) == (
        parse_instant("2026-11-24T23:00:00Z"),
        parse_instant("2026-11-25T23:00:00Z"),
    )
    begin, end = trigger.interval(parse_instant("2026-11-27T23:00:00Z"), "n/a")
    assert end - begin == 3 * 86_400_000 + 60_000


@pytest.mark.parametrize(
    ("expression", "begin", "end"),
    [("* 0-5 * * *", "00:00", "06:00"), ("30-40 3 * * *", "03:30", "03:41"), ("* 3-23 * * *", "03:00", "24:00")],
)
def test_given_minutes_left_out_then_the_span_is_all_of_them(expression: str, begin: str, end: str) -> None:
    trigger = cron({"type": "cron", "expression": expression, "zone": "UTC"}, expression="* * * * *")
    midnight = parse_instant("2026-06-01T00:00:00Z")
    first, last = ((int(time[:2]) * 60 + int(time[3:])) * 60_000 for time in (begin, end))

    assert trigger.excluded_at(midnight + 3 * 3_600_000 + 35 * 60_000) == (midnight + first, midnight + last)


def test_given_everything_left_out_then_nothing_follows() -> None:
    assert cron({"type": "cron", "expression": "* * * * *"}).next_after(0, "n/a") is None
    assert cron({"type": "cron", "expression": "0-59 6 * * *"}, expression="* 6 * * *").next_after(0, "n/a") is None


@pytest.mark.parametrize(
    ("exclusion", "field"),
    [
        ({"type": "cron", "expression": "0 24 * * *"}, "expression"),
        ({"type": "dates", "first": "2026-13-01"}, "2026-13-01"),
        ({"type": "dates", "first": "24.12.2026"}, "is not a date"),
        ({"type": "dates", "first": "2026-12-24", "last": "2026-12-23"}, "before first"),
        ({"type": "dates"}, "first"),
        ({"type": "dates", "first": "2026-12-24", "zone": "CET"}, "abbreviation"),
        ({"type": "calendar", "name": "holidays"}, "calendar"),
    ],
)
def test_given_a_fault_then_it_is_refused(exclusion: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        cron(exclusion)


def test_given_every_macro_with_exclusions_then_it_is_refused() -> None:
    with pytest.raises(ValidationError, match="is not allowed with @every"):
        ANY.validate_python({"type": "cron", "expression": "@every 90m", "exclude": [CHRISTMAS]})


def test_given_stored_form_then_it_reads_back() -> None:
    trigger = cron(CHRISTMAS, {"type": "dates", "first": "2026-12-24", "last": "2027-01-06"})

    assert ANY.validate_json(trigger.canonical_json()) == trigger
