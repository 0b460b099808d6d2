from __future__ import annotations

import pytest

from tests.support.checkers.lateness import HandOver, all_on_time, first_on_time, gap_of, histogram, percentile
from tests.support.checkers.messages import Crash, Delivery

CRASH = Crash(at=10_000, shards=frozenset({1, 9}), served_at=17_000)


def a_delivery(shard: int, nominal: int, late_ms: int) -> Delivery:
    return Delivery(1, f"{shard:04d}-x", nominal, nominal + late_ms)


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_given_a_hundred_values_then_the_percentile_is_exact(share: float, expected: int) -> None:
    assert percentile(list(range(100, 0, -1)), share) == expected


def test_given_no_values_then_there_is_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_given_lateness_then_the_histogram_counts_by_upper_bound() -> None:
    assert histogram([0, 10, 11, 40_000]) == "<=10 ms: 2  <=25 ms: 1  >30000 ms: 1"


def test_given_a_backlog_then_only_what_is_on_time_ends_the_wait() -> None:
    deliveries = [a_delivery(1, 9_990, 20), a_delivery(1, 11_000, 6_000), a_delivery(1, 17_000, 30)]

    assert first_on_time(CRASH, deliveries) == 7_030


def test_given_only_other_shards_deliver_then_there_is_no_fire_of_the_crashed_ones() -> None:
    assert first_on_time(CRASH, [a_delivery(2, 17_000, 30)]) is None


def test_given_groups_of_shards_then_the_last_one_counts() -> None:
    deliveries = [a_delivery(1, 17_000, 0), a_delivery(9, 18_000, 0)]

    assert all_on_time(CRASH, [frozenset({1}), frozenset({9})], deliveries) == 8_000
    assert all_on_time(CRASH, [frozenset({1}), frozenset({5})], deliveries) is None


def test_given_a_hand_over_then_its_gap_is_the_first_arrival_of_the_latest_message_that_was_due_meanwhile() -> None:
    hand_over = HandOver(10_000, frozenset({1, 9}), 12_000)
    before, behind, elsewhere = a_delivery(1, 9_999, 5_000), a_delivery(9, 12_001, 5_000), a_delivery(2, 11_000, 5_000)
    repeated = [Delivery(2, "0009-y", 11_000, 11_000 + late) for late in (900, 1_400)]

    assert gap_of(hand_over, [before, behind, elsewhere, a_delivery(1, 10_000, 700), *repeated]) == 900
    assert gap_of(hand_over, [before, behind, elsewhere]) is None
