"""How faults of time triggers are told: the field's path, the problem, and the way out (SEMANTICS 1.7, 17)."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate_core.language.definitions.schedule_validation import check_schedule
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.language.values.problems import InvalidInput, Problem

PYTHON = {"type": "program", "program": {"type": "python", "file": "jobs/a.py"}}
MESSAGE = {"type": "message", "topic": "t", "payload": 1}
DAILY = {"type": "cron", "expression": "0 6 * * *"}
NOW = parse_instant("2026-11-20T22:00:00Z")


def document(trigger: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"namespace": "n", "name": "a", "target": PYTHON, "trigger": trigger, **fields}


def told(trigger: dict[str, Any], **fields: Any) -> Problem:
    with pytest.raises(InvalidInput) as caught:
        parse_schedule(document(trigger, **fields))
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("trigger", "field", "problem", "hint"),
    [
        ({**DAILY, "dst_gap": "shft"}, "trigger.dst_gap", "not one of: shift, skip", "did you mean shift?"),
        ({**DAILY, "dst_overlap": "twice"}, "trigger.dst_overlap", "not one of: first, last, both", ""),
        ({**DAILY, "expression": "0 * * * *", "dst_gap": "skip"}, "trigger.dst_gap", "no meaning", "real time"),
        ({**DAILY, "gap": "skip"}, "trigger.gap", "not a field", "called dst_gap"),
        ({**DAILY, "jitter": "5m"}, "trigger.jitter", "not a field", "called flexible"),
        ({**DAILY, "max_fires": 0}, "trigger.max_fires", "at least 1", ""),
        ({**DAILY, "max_fires": "3"}, "trigger.max_fires", "not a whole number", ""),
        ({**DAILY, "flexible": "0s"}, "trigger.flexible", "above 0", ""),
        ({**DAILY, "flexible": "25h"}, "trigger.flexible", "at most", ""),
        ({**DAILY, "flexible": 900}, "trigger.flexible", "not a duration", "unit"),
        ({**DAILY, "flexible": "24h"}, "trigger.flexible", "not shorter than pending_timeout, 1d", "expire"),
        ({**DAILY, "dialect": "quartz"}, "trigger.expression", "has 5 fields", '"0 0 6 * * ?"'),
        ({**DAILY, "exclude": [{"type": "dates"}]}, "trigger.exclude[0].first", "is missing", ""),
        ({**DAILY, "exclude": [{"type": "date"}]}, "trigger.exclude[0].type", "is unknown", "dates?"),
        (
            {**DAILY, "exclude": [{"type": "cron", "expression": "0 24 * * *"}]},
            "trigger.exclude[0].expression",
            "24 is not in 0-23",
            '"0 23 * * *"',
        ),
        (
            {**DAILY, "exclude": [{"type": "cron", "expression": "@every 1h"}]},
            "trigger.exclude[0].expression",
            "is no macro",
            "",
        ),
        (
            {**DAILY, "exclude": [{"type": "dates", "first": "2026-02-30"}]},
            "trigger.exclude[0].first",
            "not a date",
            "",
        ),
        (
            {**DAILY, "exclude": [{"type": "dates", "first": 20261224}]},
            "trigger.exclude[0].first",
            "not a date",
            "quotes",
        ),
        (
            {**DAILY, "exclude": [{"type": "dates", "first": "2026-12-24"}] * 51},
            "trigger.exclude",
            "has 51 entries",
            "",
        ),
        (
            {"type": "at", "instant": "2027-01-01T00:00:00Z", "max_fires": 1},
            "trigger.max_fires",
            "fires once",
            "leave it out",
        ),
        ({"type": "every", "period": {"days": 0}}, "trigger.period.days", "from 1 to 3650", ""),
        ({"type": "every", "period": {"hours": 2}}, "trigger.period", "not one of days, weeks or months", '"90m"'),
        ({"type": "every", "period": {"days": 1}, "phase": "1h"}, "trigger.phase", "elapsed time", "at"),
        ({"type": "every", "period": {"days": 1}, "at": 230}, "trigger.at", "not a time of day", "quotes"),
        (
            {"type": "every", "period": "1d", "zone": "Europe/Rome"},
            "trigger.zone",
            "no meaning for elapsed",
            "{days: 1}",
        ),
        ({"type": "times", "specs": []}, "trigger.specs", "at least 1", ""),
        ({"type": "times", "specs": [DAILY] * 51}, "trigger.specs", "has 51 entries, at most 50", ""),
        (
            {"type": "times", "expressions": ["0 6 * * *"], "specs": [DAILY]},
            "trigger.expressions",
            "not a field",
            "specs",
        ),
        (
            {"type": "times", "specs": [DAILY, {"type": "cron", "expression": "0 24 * * *"}]},
            "trigger.specs[1].expression",
            "24 is not in 0-23",
            "",
        ),
        (
            {"type": "times", "specs": [DAILY, {**DAILY, "max_fires": 2}]},
            "trigger.specs[1].max_fires",
            "together",
            "next to",
        ),
        (
            {"type": "times", "specs": [DAILY], "exclude": [{"type": "dates", "first": "2026-12-24"}]},
            "trigger.exclude[0].zone",
            "is missing",
            "zone whose days",
        ),
        ({"type": "cron", "expression": "@reboot"}, "trigger.expression", "names no time", "type at"),
    ],
)
def test_given_faulty_time_trigger_then_field_problem_and_hint_are_told(
    trigger: dict[str, Any], field: str, problem: str, hint: str
) -> None:
    found = told(trigger)

    assert found.field == field
    assert problem in found.problem
    assert hint in found.hint


@pytest.mark.parametrize("field", ["max_fires", "flexible"])
def test_given_message_then_what_needs_a_job_is_refused(field: str) -> None:
    found = told({**DAILY, field: 3 if field == "max_fires" else "15m"}, target=MESSAGE)

    assert found.field == f"trigger.{field}"
    assert "with a message as target" in found.problem


@pytest.mark.parametrize(
    ("trigger", "field", "problem"),
    [
        (
            {"type": "times", "specs": [DAILY, {"type": "every", "period": "5s"}]},
            "trigger.specs[1].period",
            "minimum period",
        ),
        ({"type": "cron", "dialect": "quartz", "expression": "0/5 * * * * ?"}, "trigger.expression", "minimum period"),
        ({"type": "cron", "dialect": "quartz", "expression": "0 0 6 * * ? 2020"}, "trigger", "next ten years"),
        (
            {**DAILY, "exclude": [{"type": "cron", "expression": "* 6 * * *"}]},
            "trigger.exclude",
            "no time is left in ten years",
        ),
        (
            {**DAILY, "exclude": [{"type": "dates", "first": "2026-01-01", "last": "2040-01-01"}]},
            "trigger.exclude",
            "no time is left in ten years",
        ),
        ({"type": "times", "specs": [{"type": "at", "instant": "2026-01-01T00:00:00Z"}]}, "trigger", "next ten years"),
    ],
)
def test_given_what_the_present_makes_of_it_then_it_is_told(trigger: dict[str, Any], field: str, problem: str) -> None:
    (found,) = check_schedule(parse_schedule(document(trigger)), now=NOW)

    assert found.field == field
    assert problem in found.problem


@pytest.mark.parametrize("expression", ["H H * * *", "H/15 * * * *"])
def test_given_h_then_nothing_is_wrong(expression: str) -> None:
    assert check_schedule(parse_schedule(document({**DAILY, "expression": expression})), now=NOW) == ()


def test_given_a_definition_of_before_then_its_hash_is_what_it_was() -> None:
    """New fields are absent where they are not given: an unchanged file stays an unchanged schedule."""
    text = parse_schedule(document({**DAILY, "zone": "Europe/Rome"})).canonical_json()

    assert '"trigger":{"dialect":"unix5","expression":"0 6 * * *","type":"cron","zone":"Europe/Rome"}' in text
