"""Two records of one id without a key, and an owner that falls with half of what it wrote of one of them (I3, I8)."""

from __future__ import annotations

import pytest

from tests.simulation.mutants.messages.partial_writes import a_timer_row_is_all_that_a_record_leaves


@pytest.mark.parametrize("falls_again", [False, True])
@pytest.mark.parametrize("after", ["1m", "5m"], ids=["in the window", "beyond the window"])
@pytest.mark.parametrize("is_earlier", [False, True], ids=["the other is later", "the other is earlier"])
def test_given_a_timer_row_without_its_message_then_another_record_of_the_id_is_sent_once_at_its_own_time(
    is_earlier: bool, after: str, falls_again: bool
) -> None:
    """Found by a review: it was sent at the other record's time, before its own or once more."""
    found = a_timer_row_is_all_that_a_record_leaves(is_earlier=is_earlier, after=after, falls_again=falls_again)
    assert list(found) == []
