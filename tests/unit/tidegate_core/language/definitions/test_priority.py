"""The order of waiting jobs: ageing by one class for each half hour, without rewriting anything (SEMANTICS 7.3)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import NOW
from tidegate_core.language.definitions.priority import AGEING_MS, Priority, class_of, order_of

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
