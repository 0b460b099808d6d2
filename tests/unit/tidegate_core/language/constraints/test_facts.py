"""Rates that schedules share: which of them are one, and until when an admission counts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import HOUR, MINUTE, NOW, parsed_spec
from tidegate_core.admission.permits import limit_key
from tidegate_core.language.constraints import Allow, Claim, Facts, RateConstraint
from tidegate_core.language.constraints.facts import EXACT_MAX, Span
from tidegate_core.language.targets.argument_templates import RunValues
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.rows import keys
from tidegate_core.rows.run_history import PastRuns

CLAIM = Claim("flights", "a", parsed_spec("a").program, RunValues("r", 1, nominal=0, correlation="mon"))


def rate(**fields: Any) -> RateConstraint:
    return RateConstraint.model_validate({"type": "rate", "max": 1, "per": "1h", **fields})


def of_group(**fields: Any) -> RateConstraint:
    return rate(**{"scope": "group", "group": "calls", **fields})


def key_of(constraint: RateConstraint) -> str:
    limit = constraint.limit(CLAIM)
    assert limit is not None
    return limit_key(0, limit).pk


def test_given_a_rate_of_the_schedule_then_it_is_no_limit_and_a_shared_one_looks_at_no_past() -> None:
    """The schedule's own is judged by its own item, a shared one by the write that counts."""
    past = PastRuns(namespace="n", name="s", incarnation="I1", admitted=(NOW,))
    assert rate().limit(CLAIM) is None
    assert (rate().admissions_remembered, of_group().admissions_remembered) == (1, 0)
    assert of_group().check(Facts(now=NOW, satisfied_at=NOW, past=past)) == Allow()


def test_given_the_same_scope_name_and_span_then_it_is_one_rate_whatever_its_max() -> None:
    assert key_of(of_group()) == key_of(of_group(per="60m", max=7, on_unmet="abort"))


@pytest.mark.parametrize(
    "other",
    [
        {"per": "2h"},
        {"window": "calendar"},
        {"window": "calendar", "zone": "Europe/Rome"},
        {"group": "others"},
        {"scope": "key", "group": None, "key": "calls"},
        {"scope": "program", "group": None},
    ],
    ids=str,
)
def test_given_another_scope_name_or_span_then_it_is_another_rate(other: dict[str, Any]) -> None:
    fields = {"scope": "group", "group": "calls", "per": "1h", **other}
    assert key_of(rate(**fields)) != key_of(of_group())


def test_given_a_key_then_it_is_told_from_other_limits() -> None:
    assert keys.is_rate(keys.shared_rate("flights", "group", "x", 1, None))
    assert not keys.is_rate(keys.shared_limit("flights", "group", "x"))
    assert not keys.is_rate(keys.own_limit(0, "flights", "a"))


def test_given_a_calendar_without_a_zone_then_it_is_that_of_utc() -> None:
    assert key_of(of_group(window="calendar")) == key_of(of_group(window="calendar", zone="UTC"))


def test_given_a_sliding_span_then_each_admission_counts_for_its_length() -> None:
    assert Span(HOUR).counts_until(NOW, EXACT_MAX - 1) == NOW + HOUR


def test_given_many_admissions_then_those_of_a_fiftieth_of_the_span_count_until_one_instant_and_none_too_short() -> (
    None
):
    until = {Span(50 * MINUTE).counts_until(NOW + at, EXACT_MAX) for at in range(0, 10 * MINUTE, 999)}
    assert len(until) <= 11
    assert all(
        50 * MINUTE <= Span(50 * MINUTE).counts_until(NOW + at, EXACT_MAX) - (NOW + at) < 51 * MINUTE
        for at in range(0, 3 * MINUTE, 997)
    )


@pytest.mark.parametrize(
    ("per", "zone", "until"),
    [
        pytest.param("1h", "UTC", "2026-03-29T01:00:00Z", id="hour"),
        pytest.param("1h", "Asia/Kolkata", "2026-03-29T00:30:00Z", id="hours of a zone with half an hour"),
        pytest.param("1d", "Europe/Rome", "2026-03-29T22:00:00Z", id="a day of 23 hours"),
    ],
)
def test_given_a_calendar_then_an_admission_counts_to_the_end_of_its_hour_or_day(
    per: str, zone: str, until: str
) -> None:
    limit = of_group(per=per, window="calendar", zone=zone).limit(CLAIM)
    assert limit is not None
    assert limit.span is not None
    assert format_instant(limit.span.counts_until(parse_instant("2026-03-29T00:10:00Z"), 1_000)) == until
