"""Lateness from what the consumer wrote down."""

from __future__ import annotations

from tests.benchmarks.rig.sink import arrivals_of

DUE = "2026-03-03T10:00:00.500Z"
DUE_US = 1_772_532_000_500_000


def test_given_records_then_lateness_is_at_the_consumer_and_a_repeat_is_none() -> None:
    rows = [(DUE, 0, DUE_US + 2_000 * (number + 1), f"id-{number}") for number in range(100)]
    figures = arrivals_of([*rows, (DUE, 0, DUE_US + 9_000_000, "id-0")]).figures()
    assert figures == {
        "delivered": 100,
        "repeats": 1,
        "late_p50_ms": 100.0,
        "late_p99_ms": 198.0,
        "late_max_ms": 200.0,
        "early": 0,
        "drained_s": 0.2,
        "per_s": 500.0,
    }


def test_given_a_record_before_its_time_then_it_is_counted() -> None:
    figures = arrivals_of([(DUE, 0, DUE_US - 1, "a"), (DUE, 0, DUE_US + 1_000, "b")]).figures()
    assert figures["early"] == 1
