"""The budget of retries: a share of the launches of ten minutes, and a few in any case."""

from __future__ import annotations

import random

import pytest

from tests.support.builders import MINUTE, NOW, SECOND
from tidegate_core.language.definitions.run_policies import Priority
from tidegate_core.shard.retry_budget import ALWAYS, BUDGET_WINDOW_MS, SHARE, RetryBudget


def asked(
    budget: RetryBudget, times: int, namespace: str = "flights", now: int = NOW, priority: Priority = "medium"
) -> list[int]:
    """Asks for retries in ten seconds, one after another; returns when they may begin."""
    found: list[int] = []
    for _ in range(times):
        found.append(budget.earliest(namespace, priority, now + 10 * SECOND, now))
        budget.retried(namespace, priority, found[-1])
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


def test_given_retries_of_low_programs_then_an_urgent_one_is_tried_again_when_it_likes() -> None:
    budget = RetryBudget()
    asked(budget, ALWAYS, priority="low")
    assert asked(budget, 1, priority="low") == [NOW + 10 * SECOND + BUDGET_WINDOW_MS]
    assert asked(budget, ALWAYS, priority="highest") == [NOW + 10 * SECOND] * ALWAYS
    assert asked(budget, 1, priority="highest") == [NOW + 10 * SECOND + BUDGET_WINDOW_MS]


def test_given_retries_of_urgent_programs_then_a_low_one_waits_for_room() -> None:
    budget = RetryBudget()
    asked(budget, ALWAYS, priority="highest")
    assert asked(budget, 1, priority="low") == [NOW + 10 * SECOND + BUDGET_WINDOW_MS]


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


def test_given_retries_that_are_planned_for_later_then_one_before_them_begins_when_it_likes() -> None:
    """Found in review: five that were planned for in 14 h had the next one of their namespace, wanted in 10 s, wait for longer than that."""
    budget = RetryBudget()
    for number in range(ALWAYS):
        budget.retried("flights", "medium", NOW + 14 * 60 * MINUTE + number)
    assert asked(budget, ALWAYS + 1) == [NOW + 10 * SECOND] * ALWAYS + [NOW + 10 * SECOND + BUDGET_WINDOW_MS]


@pytest.mark.parametrize("seed", range(50))
def test_given_retries_that_are_wanted_in_any_order_then_each_begins_as_soon_as_no_ten_minutes_hold_too_many(
    seed: int,
) -> None:
    chance = random.Random(seed)
    budget = RetryBudget()
    launches = chance.randrange(60)
    for _ in range(launches):
        budget.launched("flights", NOW)
    most = max(ALWAYS, launches // SHARE)
    begun: list[int] = []

    def has_room_at(at: int) -> bool:
        together = sorted([*begun, at])
        return all(last - first >= BUDGET_WINDOW_MS for first, last in zip(together, together[most:], strict=False))

    for _ in range(40):
        wanted = NOW + chance.choice([10 * SECOND, chance.randrange(15 * MINUTE), chance.randrange(300 * MINUTE)])
        begin = budget.earliest("flights", "medium", wanted, NOW)
        behind = [each + BUDGET_WINDOW_MS for each in begun if each + BUDGET_WINDOW_MS > wanted]
        assert begin == min(at for at in [wanted, *behind] if has_room_at(at))
        budget.retried("flights", "medium", begin)
        begun.append(begin)
