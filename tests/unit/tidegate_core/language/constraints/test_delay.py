"""The delay after satisfaction (SEMANTICS 7.5)."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.support.builders import MINUTE, NOW, a_spec
from tidegate_core.language.constraints import Allow, DelayConstraint, Facts, Hold
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.problems import InvalidInput

QUARTER = DelayConstraint.model_validate({"type": "delay", "after": "15m"})


def test_given_a_satisfied_job_then_it_goes_exactly_after_the_delay() -> None:
    """CD-082: measured from the satisfaction of the trigger."""
    end = NOW + 15 * MINUTE
    assert QUARTER.check(Facts(now=end, satisfied_at=NOW)) == Allow()
    verdict = QUARTER.check(Facts(now=end - 1, satisfied_at=NOW))
    assert isinstance(verdict, Hold)
    assert (verdict.until, verdict.reason_code) == (end, "delayed")
    assert verdict.reason == "the delay of 15m ends at 2025-11-13T02:28:20Z"
    assert verdict.values == {"after": 15 * MINUTE, "satisfied_at": "2025-11-13T02:13:20Z"}


@pytest.mark.parametrize("fields", [{"after": "0s"}, {"after": 15}, {}, {"after": "1m", "on_unmet": "abort"}])
def test_given_a_delay_that_means_nothing_then_it_is_refused(fields: dict[str, object]) -> None:
    """CD-080: a delay is always waited for; one that aborts would abort every job."""
    with pytest.raises(ValidationError):
        DelayConstraint.model_validate({"type": "delay", **fields})


@pytest.mark.parametrize("action", ["abort", "force", "alert"])
def test_given_a_delay_as_long_as_the_pending_time_out_then_it_is_refused_where_every_job_would_expire(
    action: str,
) -> None:
    delay = {"type": "delay", "after": "1h"}
    spec = a_spec(constraints=[delay], pending_timeout="1h", pending_timeout_action=action)
    if action != "abort":
        assert parse_schedule(spec).pending_timeout_action == action
        return
    with pytest.raises(InvalidInput) as refused:
        parse_schedule(spec)
    assert refused.value.problems[0].field == "constraints[0].after"


def test_given_two_delays_then_the_second_is_refused() -> None:
    """OQ-17."""
    delay = {"type": "delay", "after": "1h"}
    with pytest.raises(InvalidInput) as refused:
        parse_schedule(a_spec(constraints=[delay, {**delay, "after": "2h"}]))
    (problem,) = refused.value.problems
    assert (problem.field, problem.problem) == ("constraints[1]", "delays the job a second time")
