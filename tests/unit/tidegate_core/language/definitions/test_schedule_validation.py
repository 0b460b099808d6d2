"""What the present and the settings make of a schedule."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.tidegate_core.cpu_time import is_done_within
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.definitions.schedule_validation import check_schedule, fitting_problems, schedule_warnings
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.language.values.problems import InvalidInput, Problem

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


ALL_HOURS = {"type": "cron", "expression": "0 * * * *"}


def times(specs: int, **fields: Any) -> dict[str, Any]:
    hourly = {"type": "cron", "expression": "0 * * * *", "exclude": [ALL_HOURS]}
    return {"type": "times", "specs": [hourly] * specs, **fields}


@pytest.mark.parametrize(
    ("trigger", "field"),
    [
        pytest.param(cron("0 * * * *", exclude=[ALL_HOURS]), "trigger.exclude", id="one trigger"),
        pytest.param(times(2), "trigger.specs[0].exclude", id="specs"),
        pytest.param(times(50), "trigger.specs[0].exclude", id="many specs"),
        pytest.param(
            {
                "type": "times",
                "specs": [
                    cron(f"{n} * * * *", exclude=[{"type": "cron", "expression": f"{n} 1-23 * * *"}]) for n in range(50)
                ],
                "exclude": [{"type": "cron", "expression": "* 0 * * *", "zone": "UTC"}],
            },
            "trigger.exclude",
            id="both",
        ),
    ],
)
def test_given_exclusions_that_leave_out_all_then_the_search_ends_and_the_refusal_says_where(
    trigger: dict[str, Any], field: str
) -> None:
    """Without a bound over all of it, exclusions in specs under exclusions would be walked for hours."""
    said: list[tuple[Problem, ...]] = []

    assert is_done_within(300, lambda: said.append(told(trigger)))

    (problem,) = said[0]
    assert problem.field == field
    assert "excludes so much" in problem.problem
    assert "exclude whole days" in problem.hint


def test_given_a_spec_that_leaves_out_all_beside_one_that_does_not_then_it_is_refused_as_well() -> None:
    (problem,) = told({**times(2), "specs": [cron("30 6 * * *"), *times(2)["specs"]]})

    assert problem.field == "trigger.specs[1].exclude"
    assert "excludes so much" in problem.problem


@pytest.mark.parametrize(("after", "warned"), [("9m", False), ("10m", True)])
def test_given_a_delay_as_long_as_the_period_where_the_newest_waits_then_there_is_a_warning(
    after: str, warned: bool
) -> None:
    trigger, constraints = {"type": "every", "period": "10m"}, [{"type": "delay", "after": after}]
    for overlap in ("keep_latest", "coalesce", "cancel_running", "queue"):
        document = {"namespace": "n", "name": "a", "target": PYTHON, "trigger": trigger, "overlap": overlap}
        spec = parse_schedule({**document, "constraints": constraints})
        fields = [warning.field for warning in schedule_warnings(spec, NOW)]
        assert fields == (["constraints[0].after"] if warned and overlap != "queue" else [])


HOURLY = {"type": "every", "period": "1h"}
TWICE = cron("0,10 6 * * *")


@pytest.mark.parametrize("overlap", ["keep_latest", "coalesce", "cancel_running"])
@pytest.mark.parametrize(
    ("trigger", "longest", "too_long"),
    [
        pytest.param(HOURLY, "1h", "61m", id="a period"),
        pytest.param(TWICE, "10m", "11m", id="two close to one another"),
        pytest.param({"type": "times", "specs": [HOURLY, cron("50 6 * * *")]}, "10m", "11m", id="of two specs"),
        pytest.param({"type": "at", "instant": "2026-12-01T00:00:00Z"}, "12h", None, id="one"),
    ],
)
def test_given_a_flexible_window_in_which_the_next_one_comes_where_the_newest_waits_then_there_is_a_warning(
    trigger: dict[str, Any], longest: str, too_long: str | None, overlap: str
) -> None:
    assert warned_of({**trigger, "flexible": longest}, overlap=overlap) == []
    if too_long is not None:
        (warning,) = warned_of({**trigger, "flexible": too_long}, overlap=overlap)
        assert (warning.field, warning.hint) == (
            "trigger.flexible",
            f"make it no longer than {longest}, or use overlap: queue",
        )


@pytest.mark.parametrize(
    ("trigger", "flexible", "fields", "warned"),
    [
        pytest.param(HOURLY, "2h", {"max_pending": 2}, False, id="as many as may wait"),
        pytest.param(HOURLY, "121m", {"max_pending": 2}, True, id="one more"),
        pytest.param(HOURLY, "23h", {}, False, id="the default"),
        pytest.param({**HOURLY, "period": "10m"}, "17h", {}, True, id="more than the default"),
        pytest.param(TWICE, "23h", {"max_pending": 2}, False, id="few a day"),
        pytest.param(HOURLY, "23h", {"overlap": "skip", "catchup": {"mode": "last"}}, False, id="skip"),
        pytest.param(HOURLY, "23h", {"overlap": "allow"}, False, id="allow"),
    ],
)
def test_given_a_flexible_window_in_which_more_come_than_may_wait_then_there_is_a_warning(
    trigger: dict[str, Any], flexible: str, fields: dict[str, Any], warned: bool
) -> None:
    found = warned_of({**trigger, "flexible": flexible}, **fields)
    assert [each.field for each in found] == (["trigger.flexible"] if warned else [])


def warned_of(trigger: dict[str, Any], **fields: Any) -> list[Problem]:
    document = {"namespace": "n", "name": "a", "target": PYTHON, "trigger": trigger, **fields}
    return schedule_warnings(parse_schedule(document), NOW)


@pytest.mark.parametrize(
    ("instant", "catchup", "warned"),
    [
        ("2026-11-13T22:00:00Z", {}, False),
        ("2026-11-13T21:59:59Z", {}, True),
        ("2026-11-13T21:59:59Z", {"window": "8d"}, False),
    ],
)
def test_given_a_past_instant_that_is_not_made_up_for_then_there_is_a_warning(
    instant: str, catchup: dict[str, Any], warned: bool
) -> None:
    """A newcomer's `at` of the last month was accepted with a past NEXT, and nothing ever said that it would not run."""
    trigger = {"type": "at", "instant": instant}
    document = {"namespace": "n", "name": "a", "target": PYTHON, "trigger": trigger, "catchup": catchup}
    fields = [warning.field for warning in schedule_warnings(parse_schedule(document), NOW)]
    assert fields == (["trigger.instant"] if warned else [])


def test_given_a_bound_that_an_older_version_took_then_its_stored_definition_is_read() -> None:
    """Owners read what is stored: a rule that comes later is for what is applied."""
    document = {"namespace": "n", "name": "a", "target": PYTHON, "trigger": cron("0 6 * * *")}
    stored = parse_schedule({**document, "constraints": [{"type": "load", "below": 8.5}]}).canonical_json()
    spec = ScheduleSpec.from_canonical(stored.replace("8.5", "85.0"))
    assert [each.field for each in fitting_problems(spec)] == ["constraints[0].below"]


SPREAD = {"exclude": [{"type": "dates", "first": "2026-12-24"}, {"type": "cron", "expression": "H(0-29) 2 * * *"}]}
HASHED = cron("H 1-3 * * *", **SPREAD)


@pytest.mark.parametrize(
    ("trigger", "field"),
    [
        pytest.param(HASHED, "trigger.exclude[1].expression", id="alone"),
        pytest.param(
            {"type": "times", "specs": [cron("0 6 * * *"), HASHED]},
            "trigger.specs[1].exclude[1].expression",
            id="in a spec",
        ),
        pytest.param(
            {
                "type": "times",
                "specs": [cron("0 6 * * *")],
                "exclude": [{**each, "zone": "UTC"} for each in SPREAD["exclude"]],
            },
            "trigger.exclude[1].expression",
            id="beside specs",
        ),
        pytest.param(
            {"type": "any_of", "triggers": [{"type": "data_partitions", "dataset": "d"}, HASHED]},
            "trigger.triggers[1].exclude[1].expression",
            id="among others",
        ),
    ],
)
def test_given_an_exclusion_with_an_h_then_it_is_refused(trigger: dict[str, Any], field: str) -> None:
    """Review finding: it was a hash of nothing, the same for all schedules, and left out another minute than the trigger has."""
    document = {"namespace": "n", "name": "a", "target": PYTHON, "trigger": trigger}
    with pytest.raises(InvalidInput) as refusal:
        parse_schedule(document)
    (problem,) = refusal.value.problems
    assert problem.field == field
    assert problem.hint is not None


def test_given_an_h_that_an_older_version_took_then_its_stored_definition_is_read() -> None:
    document = {"namespace": "n", "name": "a", "target": PYTHON, "trigger": HASHED}
    stored = ScheduleSpec.model_validate(document).canonical_json()
    assert [each.field for each in fitting_problems(ScheduleSpec.from_canonical(stored))] == [
        "trigger.exclude[1].expression"
    ]


def among(leaf: dict[str, Any]) -> dict[str, Any]:
    nested = {"type": "any_of", "triggers": [leaf, {"type": "data_partitions", "dataset": "e"}]}
    return {"type": "all_of", "triggers": [{"type": "data_partitions", "dataset": "d"}, nested]}


@pytest.mark.parametrize(
    ("leaf", "field", "problem"),
    [
        pytest.param(
            {"type": "every", "period": "9s"}, ".period", "fires every 9s, the minimum period is 10s", id="often"
        ),
        pytest.param(
            {"type": "at", "instant": "2026-11-20T21:00:00Z"},
            ".instant",
            "has passed, it is 2026-11-20T22:00:00Z",
            id="past",
        ),
        pytest.param(
            cron("0 6 * * *", end="2026-11-20T21:00:00Z"), ".end", "has passed, it is 2026-11-20T22:00:00Z", id="ended"
        ),
        pytest.param(
            cron("0 6 * * *", start="2040-01-01T00:00:00Z"), "", "names no time in the next ten years", id="never"
        ),
        pytest.param(
            {"type": "times", "specs": [cron("0 6 * * *"), {"type": "every", "period": "5s"}]},
            ".specs[1].period",
            "fires every 5s, the minimum period is 10s",
            id="one of several",
        ),
    ],
)
def test_given_a_leaf_of_time_that_does_not_fit_then_it_is_told_where_it_stands(
    leaf: dict[str, Any], field: str, problem: str
) -> None:
    """A tick that never comes would hold up an all_of for ever."""
    (told_of,) = told(among(leaf))
    assert (told_of.field, told_of.problem) == (f"trigger.triggers[1].triggers[0]{field}", problem)


def test_given_a_leaf_of_time_that_fits_then_nothing_is_wrong() -> None:
    assert told(among(cron("0 6 * * *", max_fires=1))) == ()
