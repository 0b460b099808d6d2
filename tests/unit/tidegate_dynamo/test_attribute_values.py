from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.rows.store_operations import Value
from tidegate_dynamo.attribute_values import decoded, decoded_item, encoded, encoded_item
from tidegate_ports.store import StoreRequestInvalid

SCALARS = st.none() | st.booleans() | st.integers(-(10**38) + 1, 10**38 - 1) | st.text()
SETS = st.frozensets(st.text(), min_size=1)
VALUES = st.recursive(
    SCALARS | st.binary() | SETS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1), inner, max_size=4),
    max_leaves=12,
)


def typed(value: Value) -> object:
    """The value with its types, since `True == 1` to Python."""
    if isinstance(value, list):
        return [typed(element) for element in value]
    if isinstance(value, dict):
        return {name: typed(member) for name, member in value.items()}
    return type(value), value


@given(VALUES)
def test_given_any_value_then_it_comes_back_as_it_was(value: Value) -> None:
    assert typed(decoded(encoded(value))) == typed(value)


@given(st.recursive(SCALARS | SETS, lambda inner: st.lists(inner, max_size=3), max_leaves=8))
def test_given_any_value_then_boto3_reads_and_writes_the_same(value: Value) -> None:
    """Binaries aside, which the SDK encodes itself when it is not told to pass values on."""
    ours: Any = encoded(value)
    assert TypeDeserializer().deserialize(ours) == value
    theirs = TypeSerializer().serialize(set(value) if isinstance(value, frozenset) else _mutable_sets(value))
    assert typed(decoded(theirs)) == typed(value)


def test_given_a_binary_then_it_goes_over_the_wire_in_base64() -> None:
    assert encoded(b"\x00\x01") == {"B": "AAE="}


def test_given_an_item_then_names_stay() -> None:
    item: dict[str, Value] = {"pk": "SH#0001", "epoch": 3}
    assert encoded_item(item) == {"pk": {"S": "SH#0001"}, "epoch": {"N": "3"}}
    assert decoded_item(encoded_item(item)) == item


def test_given_two_equal_sets_then_they_are_the_same_request() -> None:
    """A repeated transaction must match its client token, whatever order the set happens to have."""
    assert encoded(frozenset("cab")) == {"SS": ["a", "b", "c"]}


@pytest.mark.parametrize("value", [1.5, (1,), {"a"}, object(), frozenset()])
def test_given_a_value_that_the_store_does_not_keep_then_it_is_refused(value: Value) -> None:
    with pytest.raises(StoreRequestInvalid):
        encoded([value])


@pytest.mark.parametrize("attribute", [{"N": "1.5"}, {"NS": ["1"]}, {"BS": ["AA=="]}])
def test_given_an_attribute_that_tidegate_never_writes_then_it_is_refused(attribute: dict[str, object]) -> None:
    with pytest.raises(StoreRequestInvalid):
        decoded(attribute)


@pytest.mark.parametrize(("text", "number"), [("5.0", 5), ("1E+2", 100), ("-7", -7)])
def test_given_a_whole_number_in_another_notation_then_it_is_read(text: str, number: int) -> None:
    assert typed(decoded({"N": text})) == typed(number)


def _mutable_sets(value: Value) -> object:
    if isinstance(value, list):
        return [set(element) if isinstance(element, frozenset) else _mutable_sets(element) for element in value]
    return value
