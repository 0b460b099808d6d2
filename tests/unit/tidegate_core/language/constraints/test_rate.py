"""Runs per time, sliding and by the calendar."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.builders import HOUR, NOW, a_spec
from tidegate_core.language.constraints import Allow, Facts, Hold, RateConstraint
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.language.values.problems import InvalidInput
from tidegate_core.rows.run_history import PastRuns


def rate(most: int, per: str = "1h", **fields: Any) -> RateConstraint:
    return RateConstraint.model_validate({"type": "rate", "max": most, "per": per, **fields})


def at(now: int, *admitted: int) -> Facts:
    past = PastRuns(namespace="n", name="s", incarnation="I1", admitted=admitted)
    return Facts(now=now, satisfied_at=now, past=past)


def test_given_a_full_hour_then_the_next_goes_when_the_first_of_it_is_an_hour_old() -> None:
    """CD-086."""
    times = (NOW - HOUR, NOW - HOUR + 1, NOW - 5)
    verdict = rate(2).check(at(NOW, *times))
    assert isinstance(verdict, Hold)
    assert (verdict.until, verdict.reason_code) == (NOW + 1, "rate_reached")
    assert verdict.values == {"max": 2, "per": HOUR, "admitted": 2, "window": "sliding"}
    assert rate(2).check(at(NOW + 1, *times)) == Allow()
    assert rate(3).check(at(NOW, *times)) == Allow()


@pytest.mark.parametrize(
    ("per", "zone", "admitted", "until"),
    [
        pytest.param("1h", None, "2026-03-03T05:00:00Z", "2026-03-03T06:00:00Z", id="hour"),
        pytest.param("1h", None, "2026-03-03T04:59:59Z", None, id="the hour before"),
        pytest.param("1d", "America/New_York", "2026-03-03T05:00:00Z", "2026-03-04T05:00:00Z", id="local day"),
        pytest.param("1d", "America/New_York", "2026-03-03T04:59:59Z", None, id="local yesterday"),
        pytest.param("1h", "Asia/Kolkata", "2026-03-03T05:29:59Z", None, id="hours of a zone with half an hour"),
    ],
)
def test_given_a_calendar_then_its_hours_and_days_count(
    per: str, zone: str | None, admitted: str, until: str | None
) -> None:
    fields = {"window": "calendar"} | ({} if zone is None else {"zone": zone})
    verdict = rate(1, per, **fields).check(at(parse_instant("2026-03-03T05:59:59Z"), parse_instant(admitted)))
    found = None if isinstance(verdict, Allow) or verdict.until is None else format_instant(verdict.until)
    assert found == until


@given(
    st.lists(st.integers(0, 10_000), max_size=60),
    st.integers(1, 5),
    st.integers(1, 3_000),
    st.sampled_from([1, 5, 60]),
)
def test_given_any_demand_then_no_span_has_more_than_the_rate_allows_and_none_waits_for_nothing(
    wanted: list[int], most: int, per: int, kept: int
) -> None:
    """What is forgotten beyond `max` admissions never decides anything."""
    constraint = RateConstraint.model_construct(max=most, per=per, window="sliding", zone=None, on_unmet="wait")
    admitted: list[int] = []
    for instant in sorted(wanted):
        verdict = constraint.check(at(instant, *admitted[-max(most, kept) :]))
        inside = [each for each in admitted if each > instant - per]
        assert isinstance(verdict, Allow) == (len(inside) < most)
        if isinstance(verdict, Allow):
            admitted.append(instant)
        else:
            assert verdict.until is not None
            assert isinstance(constraint.check(at(verdict.until, *admitted[-most:])), Allow)
            assert isinstance(constraint.check(at(verdict.until - 1, *admitted[-most:])), Hold)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param({"max": 0, "per": "1h"}, "greater than or equal to 1", id="none"),
        pytest.param({"max": 1_001, "per": "1h"}, "less than or equal to 1000", id="more than is remembered"),
        pytest.param({"max": 1, "per": "hour"}, "not a duration", id="a word"),
        pytest.param({"max": 1, "per": "0s"}, "greater than 0", id="no time"),
        pytest.param({"max": 1, "per": "400d"}, "longer than 366 days", id="too long"),
        pytest.param({"max": 1, "per": "2h", "window": "calendar"}, "no span of the calendar", id="two hours"),
        pytest.param({"max": 1, "per": "1h", "zone": "UTC"}, "has no effect with a sliding", id="zone"),
    ],
)
def test_given_no_rate_then_it_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        RateConstraint.model_validate({"type": "rate", **fields})


def test_given_several_rates_then_all_stand_beside_each_other_unless_they_count_the_same() -> None:
    """OQ-17."""
    several = [{"type": "rate", "max": 3, "per": "1d"}, {"type": "rate", "max": 3, "per": "1d", "window": "calendar"}]
    assert len(parse_schedule(a_spec(constraints=[*several, {**several[0], "per": "30d"}])).constraints) == 3
    with pytest.raises(InvalidInput, match="counts the runs of each 1d"):
        parse_schedule(a_spec(constraints=[*several, {**several[0], "max": 4}]))
