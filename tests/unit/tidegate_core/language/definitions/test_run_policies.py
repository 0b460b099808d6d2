"""The order of waiting jobs: ageing by one class for each half hour, without rewriting anything (SEMANTICS 7.3).

What a retry may say, the pauses that follow from it, and the errors that it is for.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.builders import MINUTE, NOW, SECOND, a_recurring
from tests.unit.tidegate_core.language.schedule_documents import problems
from tidegate_core.language.definitions.run_policies import AGEING_MS, Priority, Retry, class_of, order_of

CLASSES: tuple[Priority, ...] = ("highest", "high", "medium", "low", "lowest")
instants = st.integers(NOW, NOW + 20 * AGEING_MS)
classes = st.sampled_from(CLASSES)


def aged(priority: Priority, satisfied_at: int, now: int) -> float:
    """Returns the class that a job has come to, as the rule says it: the smaller, the sooner."""
    at = CLASSES.index(priority)
    return float("-inf") if at == 0 else at - (now - satisfied_at) / AGEING_MS


@given(classes, instants, classes, instants, instants)
def test_given_two_jobs_then_whoever_has_aged_to_the_higher_class_goes_first_whenever_that_is_asked(
    one: Priority, since: int, other: Priority, other_since: int, now: int
) -> None:
    mine, theirs = (aged(one, since, now), since), (aged(other, other_since, now), other_since)
    if mine[0] != theirs[0]:
        assert (order_of(one, since) < order_of(other, other_since)) == (mine < theirs)
    elif one == other:
        assert (order_of(one, since) < order_of(other, other_since)) == (since < other_since)


@pytest.mark.parametrize(("before", "after"), list(itertools.pairwise(CLASSES[1:])))
def test_given_half_an_hour_of_waiting_then_it_is_worth_one_class_and_no_more(
    before: Priority, after: Priority
) -> None:
    assert order_of(before, NOW + AGEING_MS - 1) < order_of(after, NOW) <= order_of(before, NOW + AGEING_MS)


def test_given_any_waiting_then_nobody_ages_into_the_highest_class() -> None:
    years = 20 * 365 * 24 * 3_600_000
    assert order_of("highest", NOW + years) < order_of("high", NOW)


@given(classes, st.integers(0, 10**13 - 3 * AGEING_MS))
def test_given_any_instant_then_the_order_fits_into_a_key(priority: Priority, satisfied_at: int) -> None:
    assert 0 <= order_of(priority, satisfied_at) < 10**13


@pytest.mark.parametrize(("priority", "expected"), [*((each, "low") for each in CLASSES[:4]), ("lowest", "lowest")])
def test_given_what_makes_up_for_the_past_then_it_goes_behind_what_is_due_now(
    priority: Priority, expected: Priority
) -> None:
    assert class_of(priority, catch_up=True) == expected
    assert class_of(priority, catch_up=False) == priority


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
