from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_cli.demo.demo_plan import MINIMUM_PERIOD_MS, plan_from
from tidegate_core.language.triggers.on_time.cron import CronTrigger
from tidegate_core.language.values.instants import from_datetime

MOMENTS = st.integers(min_value=1_700_000_000_000, max_value=1_900_000_000_000)


@given(moment_ms=MOMENTS, day_count=st.integers(min_value=1, max_value=364))
def test_given_any_moment_then_the_cron_trigger_fires_at_exactly_the_plans_instants(
    moment_ms: int, day_count: int
) -> None:
    """The pipeline turns the n-th instant into the n-th day: one instant too many or uneven would land a wrong day."""
    earliest = datetime.fromtimestamp(moment_ms / 1000, UTC)
    plan = plan_from(earliest, day_count)
    trigger = CronTrigger.model_validate(
        {
            "type": "cron",
            "dialect": "unix6",
            "expression": plan.expression,
            "zone": "UTC",
            "start": plan.start.isoformat(),
            "end": plan.end.isoformat(),
        }
    )
    fires = []
    following = trigger.next_after(from_datetime(plan.start) - 1, "flights/land-flights")
    while following is not None:
        fires.append(following)
        following = trigger.next_after(following, "flights/land-flights")
    assert fires == [from_datetime(instant) for instant in plan.instants]
    gap_ms = trigger.smallest_gap_ms()
    assert gap_ms is not None
    assert gap_ms >= MINIMUM_PERIOD_MS
    assert earliest < plan.start <= earliest + timedelta(seconds=61)


def test_given_up_to_seven_days_then_the_period_is_eight_seconds() -> None:
    earliest = datetime(2026, 3, 3, 5, 0, 39, tzinfo=UTC)
    assert (plan_from(earliest, 7).expression, plan_from(earliest, 8).expression) == (
        "*/8 * * * * *",
        "*/10 * * * * *",
    )
    # 05:00:40 + 3 * 8 s would cross the minute, where `*/8` has a gap of four seconds.
    assert plan_from(earliest, 3).start == datetime(2026, 3, 3, 5, 1, 0, tzinfo=UTC)
    assert plan_from(earliest, 2).start == datetime(2026, 3, 3, 5, 0, 40, tzinfo=UTC)


def test_given_three_days_then_twelve_runs_are_expected() -> None:
    assert plan_from(datetime(2026, 3, 3, tzinfo=UTC), 3).occurrences == 12


def test_given_too_many_days_then_it_is_refused() -> None:
    with pytest.raises(ValueError, match="31 December"):
        plan_from(datetime(2026, 3, 3, tzinfo=UTC), 365)
