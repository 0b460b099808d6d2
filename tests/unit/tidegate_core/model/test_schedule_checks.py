"""What the present and the settings make of a schedule."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate_core.model.instants import parse_instant
from tidegate_core.model.parsing import parse_schedule
from tidegate_core.model.problems import Problem
from tidegate_core.model.schedule_checks import check_schedule

NOW = parse_instant("2026-11-20T22:00:00Z")
PYTHON = {"type": "program", "program": {"type": "python", "file": "a.py"}}


def told(trigger: dict[str, Any], minimum_period_ms: int = 10_000) -> tuple[Problem, ...]:
    spec = parse_schedule({"namespace": "n", "name": "a", "target": PYTHON, "trigger": trigger})
    return check_schedule(spec, now=NOW, minimum_period_ms=minimum_period_ms)


def cron(expression: str, **fields: Any) -> dict[str, Any]:
    return {"type": "cron", "expression": expression, **fields}


@pytest.mark.parametrize(
    "trigger",
    [
        cron("0 6 * * *"),
        cron("*/10 * * * * *", dialect="unix6"),
        cron("0 0 29 2 *"),
        cron("0 6 * * *", start="2030-01-01T00:00:00Z"),
        {"type": "every", "period": "10s"},
        {"type": "at", "instant": "1999-01-01T00:00:00Z"},
        {"type": "at", "instant": "2036-01-01T00:00:00Z"},
        {"type": "data_partitions", "dataset": "d"},
    ],
)
def test_given_trigger_that_fires_in_time_then_nothing_is_wrong(trigger: dict[str, Any]) -> None:
    assert told(trigger) == ()


@pytest.mark.parametrize(
    ("trigger", "field"),
    [
        (cron("*/8 * * * * *", dialect="unix6"), "trigger.expression"),
        (cron("* * * * * *", dialect="unix6"), "trigger.expression"),
        (cron("0,5 0 0 1 1 *", dialect="unix6"), "trigger.expression"),
        ({"type": "every", "period": "9s"}, "trigger.period"),
    ],
)
def test_given_period_below_the_minimum_then_it_is_refused_and_what_sets_it_is_named(
    trigger: dict[str, Any], field: str
) -> None:
    (problem,) = told(trigger)

    assert problem.field == field
    assert "minimum period is 10s" in problem.problem
    assert "TIDEGATE_MINIMUM_PERIOD_MS" in problem.hint
    assert told(trigger, minimum_period_ms=1_000) == ()


def test_given_minimum_below_the_floor_then_the_floor_holds() -> None:
    assert told({"type": "every", "period": "1s"}, minimum_period_ms=1) == ()


@pytest.mark.parametrize(
    ("trigger", "field"),
    [
        (cron("0 0 29 2 1", day_rule="and"), "trigger"),
        (cron("0 6 * * *", end="2026-11-20T22:00:00Z"), "trigger.end"),
        (cron("0 6 * * *", start="2037-01-01T00:00:00Z"), "trigger"),
        (cron("0 6 1 1 *", start="2027-01-02T00:00:00Z", end="2027-12-31T00:00:00Z"), "trigger"),
        ({"type": "at", "instant": "2037-01-01T00:00:00Z"}, "trigger.instant"),
    ],
)
def test_given_nothing_in_the_next_ten_years_then_it_is_refused(trigger: dict[str, Any], field: str) -> None:
    (problem,) = told(trigger)

    assert problem.field == field
