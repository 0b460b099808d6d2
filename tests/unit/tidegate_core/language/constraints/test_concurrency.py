"""The limit on open runs: which limit a job needs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tidegate_core.language.constraints import Allow, Claim, ConcurrencyConstraint, Facts, LimitRef
from tidegate_core.language.constraints.limit_scope import KEY_BYTES_MAX
from tidegate_core.language.targets.argument_templates import RunValues, Unresolved
from tidegate_core.language.targets.programs import Program

PROGRAM: TypeAdapter[Any] = TypeAdapter(Program)
UNNAMED = PROGRAM.validate_python({"type": "pyspark", "file": "/jobs/a#b.py"})
NAMED = PROGRAM.validate_python({"type": "python", "name": "join", "file": "/jobs/join.py"})


def at_most(number: Any, **fields: Any) -> ConcurrencyConstraint:
    return ConcurrencyConstraint.model_validate({"type": "concurrency", "max": number, **fields})


def a_claim(schedule: str = "join-day", program: Any = NAMED, correlation: str | None = None) -> Claim:
    return Claim("flights", schedule, program, RunValues("r", 1, nominal=0, correlation=correlation))


def name_of(limit: ConcurrencyConstraint, claim: Claim) -> str:
    return limit.limit(claim).name


def test_given_schedule_scope_then_limit_is_the_schedules_own() -> None:
    limit = at_most(2).limit(a_claim())

    assert limit == LimitRef(scope="schedule", namespace="flights", name="join-day", max=2)
    assert not limit.is_shared


def test_given_program_scope_then_schedules_of_one_program_share_it() -> None:
    limits = {at_most(1, scope="program").limit(a_claim(name)) for name in ("a", "b")}

    assert limits == {LimitRef(scope="program", namespace="flights", name="join", max=1)}


def test_given_program_without_name_then_type_and_file_name_it() -> None:
    assert name_of(at_most(1, scope="program"), a_claim(program=UNNAMED)) == "pyspark#/jobs/a#b.py"


def test_given_a_group_then_schedules_of_any_program_share_it() -> None:
    """CD-086: concurrency across a group of programs."""
    group = at_most(3, scope="group", group="night-shift")
    limits = {group.limit(a_claim(name, program)) for name, program in (("a", NAMED), ("b", UNNAMED))}

    assert limits == {LimitRef(scope="group", namespace="flights", name="night-shift", max=3)}
    assert group.limit(a_claim()).words() == "group night-shift of namespace flights"


def test_given_a_key_then_jobs_with_the_same_text_share_it() -> None:
    by_day = at_most(1, scope="key", key="load ${correlation}")

    assert [name_of(by_day, a_claim(name, correlation="2013-01-01")) for name in ("a", "b")] == ["load 2013-01-01"] * 2
    assert name_of(by_day, a_claim(correlation="2013-01-02")) == "load 2013-01-02"


def test_given_a_key_whose_value_is_missing_or_too_long_then_the_job_is_told_of_it() -> None:
    by_day = at_most(1, scope="key", key="${correlation}")

    with pytest.raises(Unresolved, match="correlation"):
        by_day.limit(a_claim())
    with pytest.raises(Unresolved, match="at most 1024"):
        by_day.limit(a_claim(correlation="x" * (KEY_BYTES_MAX + 1)))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param({"scope": "group"}, "is needed by scope: group", id="no group"),
        pytest.param({"scope": "key"}, "is needed by scope: key", id="no key"),
        pytest.param({"group": "g"}, "has no effect with scope: schedule", id="group beside a schedule"),
        pytest.param({"scope": "group", "group": "g", "key": "k"}, "has no effect with scope: group", id="both"),
        pytest.param({"scope": "group", "group": "Not a name"}, "pattern", id="no name"),
        pytest.param({"scope": "key", "key": "${nominall}"}, "is unknown", id="unknown variable"),
        pytest.param({"scope": "key", "key": "${run.id}"}, "differs for each run", id="of one run"),
        pytest.param({"scope": "key", "key": "a ${attempt}"}, "differs for each run", id="changes while it waits"),
        pytest.param({"scope": "key", "key": ""}, "at least 1", id="empty"),
    ],
)
def test_given_a_scope_that_is_not_named_as_it_wants_then_it_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        at_most(1, **fields)


def test_given_any_time_then_the_clock_never_holds_a_job_back() -> None:
    assert at_most(1).check(Facts(now=0, satisfied_at=0)) == Allow()


@pytest.mark.parametrize("number", [0, 17, -1, "1", 1.5, True, None])
def test_given_max_outside_of_1_to_16_then_it_is_refused(number: Any) -> None:
    """CD-081: at least one."""
    with pytest.raises(ValidationError):
        at_most(number)


@pytest.mark.parametrize(
    "scope", [{"scope": "program"}, {"scope": "group", "group": "g"}, {"scope": "key", "key": "k"}]
)
def test_given_what_schedules_share_then_up_to_1000_runs_may_be_allowed(scope: dict[str, str]) -> None:
    assert [at_most(number, **scope).max for number in (17, 1_000)] == [17, 1_000]
    with pytest.raises(ValidationError, match="above 1000"):
        at_most(1_001, **scope)


@pytest.mark.parametrize("scope", ["namespace", "Program", "limit"])
def test_given_other_scope_then_it_is_refused(scope: str) -> None:
    with pytest.raises(ValidationError):
        at_most(1, scope=scope)
