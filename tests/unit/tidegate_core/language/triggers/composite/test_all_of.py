"""The composite: each leaf has to be satisfied."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tidegate_core.language.triggers import AllOfTrigger

FLIGHTS = {"type": "data_partitions", "dataset": "flights.raw", "count": 1}
WEATHER = {"type": "data_partitions", "dataset": "weather.raw", "count": 2}
JOINED = {"type": "run_status", "schedule": "join-day"}


def all_of(*leaves: dict[str, Any], **fields: Any) -> AllOfTrigger:
    return AllOfTrigger.model_validate({"type": "all_of", "triggers": list(leaves), **fields})


@pytest.mark.parametrize(
    ("counts", "missing"),
    [
        ([0, 0], "1 of 1 data partitions of flights.raw; 2 of 2 data partitions of weather.raw"),
        ([1, 1], "1 of 2 data partitions of weather.raw"),
        ([0, 9], "1 of 1 data partitions of flights.raw"),
        ([1, 2], None),
    ],
)
def test_given_counts_then_missing_lists_each_short_leaf(counts: list[int], missing: str | None) -> None:
    assert all_of(FLIGHTS, WEATHER).missing(counts) == missing


def test_given_counts_of_another_number_of_leaves_then_it_is_a_bug_and_not_satisfied() -> None:
    with pytest.raises(ValueError, match="shorter"):
        all_of(FLIGHTS, WEATHER).missing([1])


def test_given_nothing_said_then_it_aborts_after_a_day_and_pairs_freely() -> None:
    trigger = all_of(FLIGHTS, JOINED)

    assert (trigger.timeout, trigger.on_timeout, trigger.correlate) == (24 * 3_600_000, "abort", None)
    assert [leaf.type for leaf in trigger.triggers] == ["data_partitions", "run_status"]
    assert trigger.leaves() == trigger.triggers


def test_given_correlation_then_each_leaf_counts_one() -> None:
    assert all_of(FLIGHTS, JOINED, correlate="data_partition").correlate == "data_partition"
    with pytest.raises(ValidationError, match="correlate: data_partition"):
        all_of(FLIGHTS, WEATHER, correlate="data_partition")


@pytest.mark.parametrize(
    "leaves",
    [
        [FLIGHTS],
        [FLIGHTS] * 51,
        [FLIGHTS, {"type": "absent", "dataset": "a"}],
        [FLIGHTS, {"type": "all_of", "triggers": [FLIGHTS]}],
    ],
)
def test_given_too_few_too_many_or_other_leaves_then_it_is_refused(leaves: list[dict[str, Any]]) -> None:
    with pytest.raises(ValidationError):
        all_of(*leaves)


@pytest.mark.parametrize("fields", [{"timeout": "0s"}, {"on_timeout": "alert"}, {"correlate": "$.day"}])
def test_given_policy_of_a_later_version_then_it_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        all_of(FLIGHTS, JOINED, **fields)
