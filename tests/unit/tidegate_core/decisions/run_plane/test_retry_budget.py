"""The budget of retries: a share of the launches of ten minutes, and a few in any case."""

from __future__ import annotations

from tidegate_core.decisions.run_plane.retry_budget import ALWAYS, BUDGET_WINDOW_MS, SHARE, RetryBudget
from tidegate_testkit.builders import NOW, SECOND


def asked(budget: RetryBudget, times: int, namespace: str = "flights", now: int = NOW) -> list[int]:
    """Asks for retries in ten seconds, one after another; returns when they may begin."""
    found: list[int] = []
    for _ in range(times):
        found.append(budget.earliest(namespace, now + 10 * SECOND, now))
        budget.retried(namespace, found[-1])
    return found


def test_given_few_launches_then_a_few_retries_begin_when_they_like_and_the_next_waits_ten_minutes() -> None:
    wanted = NOW + 10 * SECOND
    assert asked(RetryBudget(), ALWAYS + 2) == [wanted] * ALWAYS + [wanted + BUDGET_WINDOW_MS] * 2


def test_given_many_launches_then_a_fifth_as_many_retries_begin_within_ten_minutes() -> None:
    budget = RetryBudget()
    for number in range(100):
        budget.launched("flights", NOW - number)
    begins = asked(budget, 200)
    for begin in begins:
        assert sum(begin - BUDGET_WINDOW_MS < each <= begin for each in begins) <= 100 // SHARE


def test_given_launches_of_long_ago_or_of_others_then_they_allow_nothing() -> None:
    budget = RetryBudget()
    for number in range(100):
        budget.launched("flights", NOW - BUDGET_WINDOW_MS - number)
        budget.launched("orders", NOW)
    assert asked(budget, ALWAYS + 1)[-1] > NOW + BUDGET_WINDOW_MS
    assert asked(budget, ALWAYS + 1, "orders")[-1] == NOW + 10 * SECOND


def test_given_a_namespace_without_retries_then_no_more_than_the_windows_launches_are_kept() -> None:
    budget = RetryBudget()
    for number in range(10_000):
        budget.launched("flights", NOW + number * SECOND)
    assert len(budget._launches["flights"]) <= BUDGET_WINDOW_MS // SECOND + 1
