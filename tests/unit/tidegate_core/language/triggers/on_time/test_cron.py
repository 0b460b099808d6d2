"""The cron trigger: bounds, intervals, and how faults are told on its fields."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tidegate_core.language.triggers import CronTrigger
from tidegate_core.language.values.instants import format_instant, parse_instant

DAY_MS = 86_400_000


def cron(**fields: Any) -> CronTrigger:
    return CronTrigger.model_validate({"type": "cron", "expression": "0 6 * * *", "zone": "Europe/Rome", **fields})


def at(text: str) -> int:
    return parse_instant(text)


def test_given_zone_then_its_wall_clock_names_the_instants() -> None:
    following = cron().next_after(at("2026-07-01T00:00:00Z"), "id")

    assert following == at("2026-07-01T04:00:00Z")


def test_given_start_then_it_is_inclusive_and_end_is_exclusive() -> None:
    bounded = cron(start="2026-01-02T05:00:00Z", end="2026-01-04T05:00:00Z")

    assert bounded.next_after(0, "id") == at("2026-01-02T05:00:00Z")
    assert bounded.next_after(at("2026-01-02T05:00:00Z"), "id") == at("2026-01-03T05:00:00Z")
    assert bounded.next_after(at("2026-01-03T05:00:00Z"), "id") is None


def test_given_activation_on_an_occurrence_then_it_counts_and_earlier_ones_do_not() -> None:
    assert cron().first_after_activation(at("2026-01-02T05:00:00Z")) == at("2026-01-02T05:00:00Z")
    assert cron().first_after_activation(at("2026-01-02T05:00:00.001Z")) == at("2026-01-03T05:00:00Z")


def test_given_clock_changes_then_data_intervals_are_contiguous() -> None:
    daily, instant, lengths = cron(expression="0 0 * * *"), at("2026-03-27T12:00:00Z"), []
    previous_end = None
    for _ in range(4):
        following = daily.next_after(instant, "id")
        assert following is not None
        begin, end = daily.interval(following, "n/a")
        assert previous_end in {None, begin}
        lengths.append((end - begin) // 3_600_000)
        instant = previous_end = end

    assert lengths == [24, 24, 23, 24]


def test_given_start_then_first_interval_is_as_long_as_any() -> None:
    bounded = cron(start="2026-01-02T05:00:00Z")

    assert bounded.interval(at("2026-01-02T05:00:00Z"), "n/a") == (
        at("2026-01-01T05:00:00Z"),
        at("2026-01-02T05:00:00Z"),
    )


def test_given_demo_expression_then_days_follow_from_the_nominals() -> None:
    """The main job's form: a day per period, between start and end = start + days x period."""
    start = at("2026-11-20T10:00:00Z")
    trigger = cron(
        expression="*/8 * * * * *",
        dialect="unix6",
        zone="UTC",
        start=format_instant(start),
        end=format_instant(start + 24_000),
    )
    first = trigger.first_after_activation(start - 5_000)

    assert first == start
    assert trigger.next_after(first, "id") == start + 8_000
    assert trigger.next_after(start + 8_000, "id") == start + 16_000
    assert trigger.next_after(start + 16_000, "id") is None


@pytest.mark.parametrize(
    "fields",
    [
        {"expression": "0 24 * * *"},
        {"dialect": "quartz"},
        {"zone": "EST"},
        {"start": "2026-01-02T00:00:00Z", "end": "2026-01-02T00:00:00Z"},
        {"expression": 5},
    ],
)
def test_given_a_fault_then_it_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        cron(**fields)


def test_given_trigger_then_smallest_gap_is_told_in_milliseconds() -> None:
    assert cron().smallest_gap_ms() == DAY_MS


@pytest.mark.parametrize("name", ["CRON_TZ", "TZ"])
def test_given_a_zone_before_the_expression_then_it_is_the_triggers_zone(name: str) -> None:
    """As crontabs and Kubernetes write it; it was told as a field too many."""
    given = CronTrigger.model_validate({"type": "cron", "expression": f"{name}=Europe/Rome 0 6 * * *"})
    assert given == cron()
    assert cron(expression=f"{name}=Europe/Rome 0 6 * * *") == cron()


def test_given_another_zone_before_the_expression_than_in_zone_then_it_is_refused() -> None:
    with pytest.raises(ValidationError, match="stands before the expression, and zone differs"):
        cron(expression="CRON_TZ=Asia/Tokyo 0 6 * * *")
    with pytest.raises(ValidationError, match="is an abbreviation"):
        CronTrigger.model_validate({"type": "cron", "expression": "CRON_TZ=CET 0 6 * * *"})


def test_given_a_zone_before_an_excluded_expression_then_it_is_the_exclusions_zone() -> None:
    given = cron(exclude=[{"type": "cron", "expression": "CRON_TZ=Asia/Tokyo * * 25 12 *"}])
    assert given == cron(exclude=[{"type": "cron", "expression": "* * 25 12 *", "zone": "Asia/Tokyo"}])
