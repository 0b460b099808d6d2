"""The time since the schedule's last run, by what is remembered of it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.builders import HOUR, NOW, a_spec
from tidegate_core.language.constraints import Allow, Facts, Hold, SinceLastRunConstraint
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.problems import InvalidInput
from tidegate_core.rows.run_history import PastRuns


def since(of: str = "start", at_least: str = "2h") -> SinceLastRunConstraint:
    return SinceLastRunConstraint.model_validate({"type": "since_last_run", "at_least": at_least, "of": of})


def past(**facts: Any) -> Facts:
    return Facts(now=NOW, satisfied_at=NOW, past=PastRuns(namespace="n", name="s", incarnation="I1", **facts))


@pytest.mark.parametrize(("of", "fact"), [("start", "admitted"), ("finish", "finished"), ("success", "succeeded")])
def test_given_a_last_run_then_the_next_one_goes_exactly_after_the_span(of: str, fact: str) -> None:
    """CD-084: by what counts: the start, the finish, or the success."""
    last = NOW - 2 * HOUR
    assert since(of).check(past(**{fact: (5, last) if of == "start" else last})) == Allow()
    verdict = since(of).check(past(**{fact: (5, last + 1) if of == "start" else last + 1}))
    assert isinstance(verdict, Hold)
    assert (verdict.until, verdict.reason_code) == (NOW + 1, "ran_recently")
    assert verdict.reason == f"the last {of} was at 2025-11-13T00:13:20.001Z, less than 2h ago"


@pytest.mark.parametrize("of", ["start", "finish", "success"])
def test_given_no_run_yet_then_nothing_holds_the_job_back(of: str) -> None:
    assert since(of).check(Facts(now=NOW, satisfied_at=NOW)) == Allow()


@pytest.mark.parametrize("of", ["finish", "success"])
def test_given_an_open_run_that_started_days_ago_then_its_end_is_waited_for(of: str) -> None:
    """CD-084: a run that started three days ago and still runs blocks; no clock decides when."""
    verdict = since(of).check(past(admitted=(NOW - 72 * HOUR,), open=1))
    assert isinstance(verdict, Hold)
    assert (verdict.until, verdict.reason_code, verdict.values) == (None, "still_running", {"of": of, "open": 1})


def test_given_an_open_run_then_the_time_since_its_start_is_all_that_counts_for_starts() -> None:
    assert since("start").check(past(admitted=(NOW - 72 * HOUR,), open=1)) == Allow()


def test_given_a_run_that_failed_then_the_time_since_the_last_success_counts() -> None:
    """CD-084: failed and killed ones do not block."""
    assert since("success").check(past(finished=NOW - 1, succeeded=NOW - 3 * HOUR)) == Allow()


@pytest.mark.parametrize("fields", [{}, {"at_least": "0s"}, {"at_least": "1h", "of": "end"}, {"at_least": 7200}])
def test_given_no_span_then_it_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SinceLastRunConstraint.model_validate({"type": "since_last_run", **fields})


def test_given_several_of_the_same_then_the_second_is_refused_and_others_stand_beside_each_other() -> None:
    """OQ-17."""
    constraints = [{"type": "since_last_run", "at_least": "1h", "of": of} for of in ("start", "finish", "success")]
    assert len(parse_schedule(a_spec(constraints=constraints)).constraints) == 3
    with pytest.raises(InvalidInput, match="counts from the last start a second time"):
        parse_schedule(a_spec(constraints=[*constraints, constraints[0]]))
