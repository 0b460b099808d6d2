"""Repeats are judged by what the tests themselves did, and by nothing that nodes say."""

from __future__ import annotations

import pytest

from tests.support.checkers.hand_over_spans import REPEATED_MAX, Unrest
from tests.support.checkers.messages import Delivery, Sent, judge_messages

UNREST = Unrest(begin=100_000, end=120_000, shards=frozenset({3}))


def a_delivery(number: int, at: int, shard: int = 3) -> Delivery:
    return Delivery(number, f"{shard:04d}-{number}", 90_000, at)


@pytest.mark.parametrize(
    ("first", "second", "shard", "excused"),
    [
        pytest.param(99_000, 101_000, 3, True, id="sent just before it, again amid it"),
        pytest.param(99_000, 99_900, 3, False, id="both before it"),
    ],
)
def test_given_a_repeat_then_only_moves_that_the_rig_made_between_its_copies_excuse_it(
    first: int, second: int, shard: int, excused: bool
) -> None:
    copies = [a_delivery(1, first, shard), a_delivery(1, second, shard)]
    faults = judge_messages([Sent(1, 90_000)], copies, [], unrests=[UNREST])
    assert [fault.kind for fault in faults] == ([] if excused else ["repeated"])


@pytest.mark.parametrize(("behind", "excused"), [(REPEATED_MAX - 1, True), (REPEATED_MAX, False)])
def test_given_a_repeat_of_long_ago_then_only_one_of_the_shards_last_thousand_is_excused(
    behind: int, excused: bool
) -> None:
    """Ten seconds before it: a store that takes no checkpoint may be the reason, and then 1,000 messages are the bound."""
    first, second = a_delivery(0, 90_000), a_delivery(0, 101_000)
    others = [a_delivery(1 + number, 90_001 + number) for number in range(behind)]
    sent = [Sent(number, 90_000) for number in range(behind + 1)]
    faults = judge_messages(sent, [first, second, *others], [], unrests=[UNREST])
    assert [fault.kind for fault in faults] == ([] if excused else ["repeated"])


def test_given_more_repeats_of_a_shard_than_i8_allows_then_the_bound_is_broken() -> None:
    sent = [Sent(number, 90_000) for number in range(REPEATED_MAX + 1)]
    copies = [a_delivery(each.number, at) for each in sent for at in (105_000, 106_000)]
    (fault,) = judge_messages(sent, copies, [], unrests=[UNREST])
    assert f"{REPEATED_MAX + 1} messages of shard 3 after the unrest" in fault.what
