from __future__ import annotations

from tests.support.checkers.lateness import HandOver, first_on_time, gap_of
from tests.support.checkers.messages import Crash, Delivery

CRASH = Crash(at=10_000, shards=frozenset({1, 9}), served_at=17_000)


def a_delivery(shard: int, nominal: int, late_ms: int) -> Delivery:
    return Delivery(1, f"{shard:04d}-x", nominal, nominal + late_ms)


def test_given_a_backlog_then_only_what_is_on_time_ends_the_wait() -> None:
    deliveries = [a_delivery(1, 9_990, 20), a_delivery(1, 11_000, 6_000), a_delivery(1, 17_000, 30)]

    assert first_on_time(CRASH, deliveries) == 7_030


def test_given_a_hand_over_then_its_gap_is_the_first_arrival_of_the_latest_message_that_was_due_meanwhile() -> None:
    hand_over = HandOver(10_000, frozenset({1, 9}), 12_000)
    before, behind, elsewhere = a_delivery(1, 9_999, 5_000), a_delivery(9, 12_001, 5_000), a_delivery(2, 11_000, 5_000)
    repeated = [Delivery(2, "0009-y", 11_000, 11_000 + late) for late in (900, 1_400)]

    assert gap_of(hand_over, [before, behind, elsewhere, a_delivery(1, 10_000, 700), *repeated]) == 900
    assert gap_of(hand_over, [before, behind, elsewhere]) is None
