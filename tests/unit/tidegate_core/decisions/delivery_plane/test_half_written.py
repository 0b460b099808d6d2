"""Two records of one id without a key, and an owner that falls with half of what it wrote of one of them (I3, I8)."""

from __future__ import annotations

import pytest

from tidegate_testkit.simulation.mutants.rules_of_halves import (
    a_half_comes_again_behind_the_delivery,
    a_half_is_all_that_wakes_the_message,
    a_timer_row_is_all_that_a_record_leaves,
)


@pytest.mark.parametrize("falls_again", [False, True])
@pytest.mark.parametrize("after", ["1m", "5m"], ids=["in the window", "beyond the window"])
@pytest.mark.parametrize("is_earlier", [False, True], ids=["the other is later", "the other is earlier"])
def test_given_a_timer_row_without_its_message_then_another_record_of_the_id_is_sent_once_at_its_own_time(
    is_earlier: bool, after: str, falls_again: bool
) -> None:
    """Found by a review: it was sent at the other record's time, before its own or once more."""
    found = a_timer_row_is_all_that_a_record_leaves(is_earlier=is_earlier, after=after, falls_again=falls_again)
    assert list(found) == []


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_given_a_timer_row_of_another_record_that_comes_again_then_what_was_delivered_stays_delivered(
    is_cancelled: bool,
) -> None:
    """Seed 20503270."""
    assert list(a_half_comes_again_behind_the_delivery(is_cancelled=is_cancelled)) == []


def test_given_a_message_without_a_timer_row_of_its_own_then_that_of_another_record_wakes_it() -> None:
    assert list(a_half_is_all_that_wakes_the_message()) == []
