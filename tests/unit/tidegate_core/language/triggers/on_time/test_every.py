"""The trigger on elapsed time: multiples of the period since the epoch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tidegate_core.language.triggers import EveryTrigger, Trigger

ANY: TypeAdapter[Any] = TypeAdapter(Trigger)


def every(**fields: Any) -> EveryTrigger:
    return EveryTrigger.model_validate({"type": "every", "period": "90m", **fields})


@given(st.integers(0, 4_000_000_000_000), st.integers(1, 86_400), st.integers(0, 86_399))
def test_given_any_period_and_phase_then_next_is_the_first_multiple_after(
    after: int, period_s: int, phase_s: int
) -> None:
    phase_s %= period_s
    trigger = every(period=f"{period_s}s", phase=f"{phase_s}s")
    following = trigger.next_after(after, "id")

    assert following is not None
    assert after < following <= after + period_s * 1000
    assert (following - phase_s * 1000) % (period_s * 1000) == 0
    assert trigger.next_after(following, "id") == following + period_s * 1000


def test_given_nominal_then_interval_is_one_period() -> None:
    assert every().interval(5_400_000 * 3, "n/a") == (5_400_000 * 2, 5_400_000 * 3)


def test_given_start_between_two_then_alignment_stays_with_the_epoch() -> None:
    assert every(period="10s", start="1970-01-01T00:01:05Z").next_after(0, "id") == 70_000


def test_given_start_on_one_then_it_is_inclusive() -> None:
    bounded = every(period="10s", start="1970-01-01T00:01:00Z", end="1970-01-01T00:01:20Z")

    assert bounded.first_after_activation(0) == 60_000
    assert bounded.next_after(60_000, "id") == 70_000
    assert bounded.next_after(70_000, "id") is None


def test_given_every_macro_of_cron_then_it_is_this_trigger() -> None:
    read = ANY.validate_python({"type": "cron", "expression": "@every 90m", "zone": "Europe/Rome"})

    assert read == every()


def test_given_every_macro_with_bounds_then_they_are_kept_and_what_it_stands_for_is_stored() -> None:
    bounds = {"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"}
    read = ANY.validate_python({"type": "cron", "expression": "@every 1h30m", "dialect": "unix6", **bounds})

    assert read == every(**bounds)
    assert ANY.validate_json(read.canonical_json()) == read


@pytest.mark.parametrize(
    "fields",
    [
        {"period": "999ms"},
        {"period": "0s"},
        {"period": 90},
        {"period": {"days": 1, "at": "02:30"}},
        {"phase": "90m"},
    ],
)
def test_given_a_fault_then_it_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        every(**fields)
