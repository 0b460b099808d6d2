"""What a retry may say, the pauses that follow from it, and the errors that it is for."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.builders import MINUTE, SECOND, a_recurring
from tests.unit.tidegate_core.language.schedule_documents import problems
from tidegate_core.language.definitions.retry_policy import Retry


def a_retry(**fields: Any) -> Retry:
    return Retry.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "pauses_s"),
    [
        pytest.param({}, [30, 60, 120, 240, 480, 960, 1800, 1800], id="doubled from 30 s to 30 min"),
        pytest.param({"backoff": "1s", "max_backoff": "5s"}, [1, 2, 4, 5, 5], id="bounded"),
        pytest.param({"backoff": "2h"}, [7200, 7200], id="longer than the usual bound"),
    ],
)
def test_given_a_backoff_then_pauses_double_up_to_their_bound(fields: dict[str, Any], pauses_s: list[int]) -> None:
    retry = a_retry(tries=1, **fields)
    assert [retry.pause_ms(number) // SECOND for number in range(len(pauses_s))] == pauses_s
    assert a_retry().pause_ms(1_000_000) == 30 * MINUTE


def test_given_no_tries_then_nothing_follows() -> None:
    assert not a_retry().follows("transient")
    assert a_retry(tries=1).follows("unknown")
    assert not a_retry(tries=1).follows("user_code")
    assert a_retry(tries=1, errors=["user_code"]).follows("user_code")


@pytest.mark.parametrize(
    "fields",
    [
        {"tries": -1},
        {"tries": 101},
        {"backoff": "0s"},
        {"backoff": "25h"},
        {"backoff": "1m", "max_backoff": "1s"},
        {"errors": []},
        {"errors": ["bad_luck"]},
    ],
)
def test_given_what_makes_no_sense_then_it_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        a_retry(**fields)


def test_given_a_definition_from_before_retries_then_its_stored_form_is_what_it_was() -> None:
    assert a_retry().canonical_json() == '{"backoff":"30s","tries":0}'


def test_given_a_message_then_its_retry_is_refused() -> None:
    (problem,) = problems({**a_recurring(), "retry": {"tries": 1}})
    assert problem.field == "retry"
