"""The Quartz dialect: seconds first, one of two day fields, special days, an optional year."""

from __future__ import annotations

import pytest

from tidegate_core.language.time.cron_fields import parse_cron
from tidegate_core.language.time.cron_items import CronError
from tidegate_core.language.time.wall_clock import next_fire
from tidegate_core.language.time.zones import zone_named
from tidegate_core.language.values.instants import format_instant, parse_instant


def days(expression: str, count: int = 4, after: str = "2026-01-01T00:00:00Z") -> list[str]:
    found, instant = list[str](), parse_instant(after) - 1
    for _ in range(count):
        following = next_fire(parse_cron(expression, "quartz"), zone_named("UTC"), instant)
        assert following is not None
        found.append(format_instant(following).removesuffix("T00:00:00Z"))
        instant = following
    return found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("0 0 0 * * ?", ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"], id="each day"),
        pytest.param("0 0 0 L * ?", ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"], id="last day"),
        pytest.param("0 0 0 L-2 * ?", ["2026-01-29", "2026-02-26", "2026-03-29", "2026-04-28"], id="two before it"),
        pytest.param("0 0 0 L-30 * ?", ["2026-01-01", "2026-03-01", "2026-05-01", "2026-07-01"], id="not in all"),
        pytest.param("0 0 0 LW * ?", ["2026-01-30", "2026-02-27", "2026-03-31", "2026-04-30"], id="last weekday"),
        pytest.param("0 0 0 L-3W * ?", ["2026-01-28", "2026-02-25", "2026-03-27", "2026-04-27"], id="weekday near L-3"),
        pytest.param(
            "0 0 0 L-30W * ?", ["2026-01-01", "2026-03-02", "2026-05-01", "2026-07-01"], id="never another month"
        ),
        pytest.param("0 0 0 15W * ?", ["2026-01-15", "2026-02-16", "2026-03-16", "2026-04-15"], id="nearest weekday"),
        pytest.param(
            "0 0 0 1W 8 ?", ["2026-08-03", "2027-08-02", "2028-08-01", "2029-08-01"], id="never the month before"
        ),
        pytest.param(
            "0 0 0 31W * ?", ["2026-01-30", "2026-03-31", "2026-05-29", "2026-07-31"], id="months that have it"
        ),
        pytest.param("0 0 0 ? * 6L", ["2026-01-30", "2026-02-27", "2026-03-27", "2026-04-24"], id="last Friday"),
        pytest.param("0 0 0 ? * fril", ["2026-01-30", "2026-02-27", "2026-03-27", "2026-04-24"], id="by its name"),
        pytest.param("0 0 0 ? * 6#3", ["2026-01-16", "2026-02-20", "2026-03-20", "2026-04-17"], id="third Friday"),
        pytest.param("0 0 0 ? * MON#5", ["2026-03-30", "2026-06-29", "2026-08-31", "2026-11-30"], id="fifth Monday"),
        pytest.param("0 0 0 ? * L", ["2026-01-03", "2026-01-10", "2026-01-17", "2026-01-24"], id="alone: Saturday"),
        pytest.param("0 0 0 ? * 1", ["2026-01-04", "2026-01-11", "2026-01-18", "2026-01-25"], id="1 is Sunday"),
        pytest.param("0 0 0 ? * SAT-SUN", ["2026-01-03", "2026-01-04", "2026-01-10", "2026-01-11"], id="over the end"),
        pytest.param("0 0 0 1 NOV-FEB ?", ["2026-01-01", "2026-02-01", "2026-11-01", "2026-12-01"], id="over new year"),
        pytest.param("0 0 0 1,L * ?", ["2026-01-01", "2026-01-31", "2026-02-01", "2026-02-28"], id="in a list"),
        pytest.param("0 0 0 1 1 ? 2028-2030", ["2028-01-01", "2029-01-01", "2030-01-01"], id="years"),
        pytest.param("@weekly", ["2026-01-04", "2026-01-11", "2026-01-18", "2026-01-25"], id="macro"),
    ],
)
def test_given_expression_then_its_days_are_quartzs(expression: str, expected: list[str]) -> None:
    assert days(expression, len(expected)) == expected


def test_given_wrapped_hours_and_open_steps_then_they_are_expanded() -> None:
    fields = parse_cron("0/20 5/30 22-1 * * ?", "quartz")

    assert fields.seconds == (0, 20, 40)
    assert fields.minutes == tuple(h * 60 + m for h in (0, 1, 22, 23) for m in (5, 35))
    assert parse_cron("/20 0 0 * * ?", "quartz").seconds == (0, 20, 40)


def test_given_years_that_have_passed_then_nothing_follows() -> None:
    fields = parse_cron("0 0 0 * * ? 2020", "quartz")

    assert next_fire(fields, zone_named("UTC"), parse_instant("2026-01-01T00:00:00Z")) is None
    assert next_fire(fields, zone_named("UTC"), parse_instant("2012-01-01T00:00:00Z")) is not None


@pytest.mark.parametrize(
    ("expression", "column", "part", "hint"),
    [
        ("0 0 12 * * *", 12, "both given", 'nearest valid form: "0 0 12 * * ?"'),
        ("0 0 12 * * MON", 8, "both given", 'nearest valid form: "0 0 12 ? * MON"'),
        ("0 0 12 15 * MON", 13, "both given", "write ? for one of them; dialect unix6 with day_rule takes both"),
        ("0 0 12 ? * ?", 8, "both day fields are ?", 'nearest valid form: "0 0 12 * * ?"'),
        ("0 0 12 ? * 0", 12, "0 is not in 1-7", 'nearest valid form: "0 0 12 ? * 1"'),
        ("0 0 24 * * ?", 5, "24 is not in 0-23", 'nearest valid form: "0 0 23 * * ?"'),
        ("0 0 12 L-31 * ?", 8, "no month has a day 31 before its last", ""),
        ("0 0 12 32W * ?", 8, "32 is not in 1-31", ""),
        ("H 0 12 * * ?", 1, "belongs to the unix dialects", "say dialect: unix5 or unix6"),
        ("0 0/90 12 * * ?", 5, "a step of 90", "for an elapsed time use a trigger of type every with period 90m"),
        ("0 0 0 * * ? 2030-2028", 13, "runs backwards", ""),
        ("0 0 0 * * ? 1969", 13, "1969 is not in 1970-2099", ""),
        ("0 0 0 30 2 ?", 0, "impossible date", "its last day is 29"),
        (
            "0 6 * * ?",
            0,
            "has 5 fields",
            'nearest valid form: "0 0 6 * * ?", with seconds in front and weekdays counted from 1',
        ),
        ("@dayly", 1, "is no macro", "did you mean @daily?"),
    ],
)
def test_given_a_fault_then_place_and_way_out_are_told(expression: str, column: int, part: str, hint: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_cron(expression, "quartz")

    assert part in caught.value.problem
    assert caught.value.column == column
    assert hint in caught.value.hint


def test_given_day_rule_then_it_is_refused() -> None:
    with pytest.raises(CronError, match="one field only"):
        parse_cron("0 0 0 * * ?", "quartz", "and")
