"""The limit on open runs: which limit a job needs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tidegate_core.constraints import Allow, ConcurrencyConstraint, Facts, LimitRef
from tidegate_core.model.programs import Program

PROGRAM: TypeAdapter[Any] = TypeAdapter(Program)
UNNAMED = PROGRAM.validate_python({"type": "pyspark", "file": "/jobs/a#b.py"})
NAMED = PROGRAM.validate_python({"type": "python", "name": "join", "file": "/jobs/join.py"})


def at_most(number: Any, **fields: Any) -> ConcurrencyConstraint:
    return ConcurrencyConstraint.model_validate({"type": "concurrency", "max": number, **fields})


def test_given_schedule_scope_then_limit_is_the_schedules_own() -> None:
    limit = at_most(2).limit_key("flights", "join-day", NAMED)

    assert limit == LimitRef(scope="schedule", namespace="flights", name="join-day", max=2)
    assert limit.text() == "flights#schedule#join-day"


def test_given_program_scope_then_schedules_of_one_program_share_it() -> None:
    limits = [at_most(1, scope="program").limit_key("flights", name, NAMED).text() for name in ("a", "b")]

    assert limits == ["flights#program#join"] * 2


def test_given_program_without_name_then_type_and_file_name_it() -> None:
    assert at_most(1, scope="program").limit_key("f", "s", UNNAMED).text() == "f#program#pyspark#/jobs/a#b.py"


def test_given_any_time_then_the_clock_never_holds_a_job_back() -> None:
    assert at_most(1).check(Facts(now=0, satisfied_at=0)) == Allow()
    assert at_most(1).limits("f", "s", NAMED) == (at_most(1).limit_key("f", "s", NAMED),)


@pytest.mark.parametrize("number", [0, 17, -1, "1", 1.5, True, None])
def test_given_max_outside_of_1_to_16_then_it_is_refused(number: Any) -> None:
    with pytest.raises(ValidationError):
        at_most(number)


def test_given_a_program_then_up_to_1000_of_its_runs_may_be_allowed() -> None:
    assert [at_most(number, scope="program").max for number in (17, 1_000)] == [17, 1_000]
    with pytest.raises(ValidationError, match="above 1000"):
        at_most(1_001, scope="program")


@pytest.mark.parametrize("scope", ["group", "namespace", "Program"])
def test_given_other_scope_then_it_is_refused(scope: str) -> None:
    with pytest.raises(ValidationError):
        at_most(1, scope=scope)
