"""Sizes and units, against the store in memory, whose sizes the conformance suite compares with DynamoDB's limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.rows.store_operations import Item
from tidegate_dynamo.attribute_values import encoded_item
from tidegate_dynamo.capacity_units import answered_units, computed_units, item_bytes, kind_of
from tidegate_memory.expressions.attribute_types import bytes_of_item

PLAIN = (
    st.text(max_size=20)
    | st.integers(-(10**20), 10**20)
    | st.booleans()
    | st.none()
    | st.binary(max_size=20)
    | st.frozensets(st.text(max_size=5), min_size=1, max_size=3)
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@given(st.dictionaries(st.text(min_size=1, max_size=10), VALUES, max_size=5))
def test_given_an_item_then_its_size_is_what_the_store_in_memory_counts(item: Item) -> None:
    assert item_bytes(encoded_item(item)) == bytes_of_item(item)


@pytest.mark.parametrize(("payload", "units"), [(0, 1), (1_024 - 7, 1), (1_024 - 6, 2), (3_000, 3)])
def test_given_a_put_then_its_units_are_started_kilobytes(payload: int, units: int) -> None:
    request = {"TableName": "a", "Item": {"payload": {"S": "x" * payload}}}
    assert computed_units("put_item", request) == {"a": units}


def test_given_a_transaction_then_each_item_counts_twice_in_its_table() -> None:
    actions = [
        {"Put": {"TableName": "a", "Item": {"payload": {"S": "x" * 3_000}}}},
        {"ConditionCheck": {"TableName": "a", "Key": {}}},
        {"Update": {"TableName": "b", "Key": {}}},
    ]
    assert computed_units("transact_write_items", {"TransactItems": actions}) == {"a": 8, "b": 2}


def test_given_an_answer_without_figures_then_there_are_none() -> None:
    assert answered_units({"Items": []}) == {}


@pytest.mark.parametrize(
    ("operation", "kind"),
    [("query", "read"), ("batch_get_item", "read"), ("put_item", "write"), ("batch_write_item", "write")],
)
def test_given_an_operation_then_it_consumes_one_kind(operation: str, kind: str) -> None:
    assert kind_of(operation) == kind
