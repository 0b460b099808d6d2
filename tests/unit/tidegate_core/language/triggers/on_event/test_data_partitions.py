"""The trigger on data: what counts, and what is missing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.language.events.events import DataPartitionEvent
from tidegate_core.language.events.trigger_facts import RunFact
from tidegate_core.language.triggers import DataPartitionsTrigger

THREE = DataPartitionsTrigger.model_validate({"type": "data_partitions", "dataset": "flights.raw", "count": 3})


def arrival(**fields: Any) -> DataPartitionEvent:
    return DataPartitionEvent.model_validate({**DataPartitionEvent.EXAMPLE, **fields})


def test_given_new_data_partition_then_it_counts_under_its_name() -> None:
    assert THREE.accepts(arrival(), "flights") == "2013-01-01"
    assert THREE.correlation_of(arrival()) == "2013-01-01"


@pytest.mark.parametrize("kind", ["appended", "replaced", "deleted"])
def test_given_other_change_then_it_does_not_count(kind: str) -> None:
    assert THREE.accepts(arrival(kind=kind), "flights") is None


def test_given_other_dataset_or_namespace_then_it_does_not_count() -> None:
    assert THREE.accepts(arrival(dataset="weather.raw"), "flights") is None
    assert THREE.accepts(arrival(), "other") is None
    assert THREE.accepts(RunFact.model_validate(RunFact.EXAMPLE), "flights") is None


def test_given_events_then_key_of_trigger_and_event_meet() -> None:
    assert THREE.event_key("flights") == arrival().event_key == "data/flights/flights.raw"


@pytest.mark.parametrize(
    ("count", "missing"),
    [
        (0, "3 of 3 data partitions of flights.raw"),
        (2, "1 of 3 data partitions of flights.raw"),
        (3, None),
        (4, None),
    ],
)
def test_given_counts_then_missing_says_what_is_short(count: int, missing: str | None) -> None:
    assert THREE.missing([count]) == missing


@given(st.lists(st.sampled_from("abcd"), max_size=20))
def test_given_repeats_in_any_order_then_entries_are_the_same(names: list[str]) -> None:
    """The bus may repeat and reorder announcements, and that must change nothing."""
    once = {THREE.accepts(arrival(partition=name), "flights") for name in names}
    again = {THREE.accepts(arrival(partition=name), "flights") for name in names[::-1] + names}

    assert once == again == set(names)


def test_given_lone_leaf_then_it_waits_for_ever_and_pairs_nothing() -> None:
    assert (THREE.terms(0).timeout, THREE.correlate, THREE.take) == (None, None, "all")
    assert THREE.leaves() == (THREE,)
