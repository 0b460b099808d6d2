"""Documents of schedules with a fault in them, and what is told of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.problems import InvalidInput, Problem

PYTHON = {"type": "program", "program": {"type": "python", "file": "jobs/a.py"}}
NIGHTLY = {"type": "cron", "expression": "0 2 * * *", "zone": "Europe/Rome"}


def document(**fields: Any) -> dict[str, Any]:
    return {"namespace": "flights", "name": "a", "target": PYTHON, "trigger": NIGHTLY, **copy.deepcopy(fields)}


def problems(given: dict[str, Any], **around: str) -> tuple[Problem, ...]:
    with pytest.raises(InvalidInput) as caught:
        parse_schedule(given, **around)
    assert caught.value.http_status == 400
    return caught.value.problems


def only_problem(**fields: Any) -> Problem:
    (problem,) = problems(document(**fields))
    return problem
