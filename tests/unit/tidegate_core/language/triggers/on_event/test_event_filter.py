"""Filters on what events say: total on every event, closed, bounded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.builders import all_of, on_data
from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.triggers.on_event.event_filter import Filter
from tidegate_core.language.values.problems import InvalidInput

TRUCK = CustomEvent.model_validate(
    {
        "type": "custom.truck",
        "namespace": "orders",
        "subject": "gate-3",
        "data": {"pallets": 12, "cold": True, "a/b": ["x", {"y": None}], "text": "12"},
    }
)
ARRIVAL = DataPartitionEvent.model_validate({**DataPartitionEvent.EXAMPLE, "rows": None})


def holds(event: CustomEvent | DataPartitionEvent, **fields: Any) -> bool:
    return Filter.model_validate(fields).holds_for(event)


@pytest.mark.parametrize(
    "fields",
    [
        {"field": "subject", "equals": "gate-3"},
        {"field": "subject", "prefix": "gate-"},
        {"field": "subject", "in": ["gate-1", "gate-3"]},
        {"field": "/data/pallets", "at_least": 12, "below": 12.5},
        {"field": "/data/pallets", "equals": 12},
        {"field": "/data/cold", "equals": True},
        {"field": "/data/a~1b/0", "equals": "x"},
        {"field": "/data/a~1b/1/y", "exists": True},
        {"field": "/data/none", "exists": False},
        {"not": {"field": "/data/none", "equals": "x"}},
        {"all_of": [{"field": "subject", "exists": True}, {"not": {"field": "bytes", "exists": True}}]},
        {"any_of": [{"field": "subject", "equals": "x"}, {"field": "/data/pallets", "above": 11}]},
    ],
)
def test_given_what_the_event_says_then_the_filter_holds(fields: dict[str, Any]) -> None:
    assert holds(TRUCK, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"field": "/data/cold", "equals": 1},
        {"field": "/data/pallets", "equals": "12"},
        {"field": "/data/text", "above": 1},
        {"field": "/data/pallets", "prefix": "1"},
        {"field": "/data/cold", "at_least": 0},
        {"field": "/data/none", "at_most": 5},
        {"field": "/data/a~1b/9", "exists": True},
        {
            "field": "/data/a~1b/00",
            "exists": True,
        },  # RFC 6901: an index has no leading zero, and a source's pointer takes none.
        {"field": "/data/pallets/x", "exists": True},
    ],
)
def test_given_something_absent_or_of_another_kind_then_the_comparison_is_false(fields: dict[str, Any]) -> None:
    assert not holds(TRUCK, **fields)


def test_given_a_number_beyond_any_float_then_it_is_compared_like_others() -> None:
    event = CustomEvent.model_validate({"type": "custom.x", "namespace": "n", "data": [10**309, -(10**4000)]})
    assert holds(event, field="/data/0", above=1.7e308)
    assert holds(event, field="/data/1", below=-1.5)
    assert not holds(event, field="/data/1", **{"in": [0, "x"]})


@pytest.mark.parametrize(
    ("more", "there"), [({}, False), ({"data": None}, False), ({"data": 0}, True), ({"data": {}}, True)]
)
def test_given_an_event_without_data_then_they_do_not_exist(more: dict[str, Any], there: bool) -> None:
    """`{field: /data, exists: true}` held for each custom event, and `exists: false` for none."""
    event = CustomEvent.model_validate({"type": "custom.truck", "namespace": "orders", **more})
    assert holds(event, field="/data", exists=True) == there
    assert holds(event, field="/data", exists=False) != there


def test_given_a_data_event_then_its_fields_are_compared() -> None:
    assert holds(ARRIVAL, field="bytes", at_least=1_000_000)
    assert holds(ARRIVAL, field="partition", prefix="2013-")
    assert holds(ARRIVAL, field="rows", exists=False)


def nested(levels: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"field": "subject", "exists": True}
    for _ in range(levels - 1):
        fields = {"not": fields}
    return fields


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"field": "subject"},
        {"field": "sbject", "equals": "x"},
        {"field": "/payload/x", "equals": "x"},
        {"equals": "x"},
        {"field": "subject", "equals": {"a": 1}},
        {"field": "subject", "in": []},
        {"field": "subject", "above": "1"},
        {"field": "subject", "above": float("inf")},
        {"field": "subject", "above": 10**309},
        {"field": "subject", "in": [-(10**400)]},
        {"field": "subject", "exists": True, "not": {"field": "rows", "exists": True}},
        {"all_of": [{"field": "rows", "exists": True}], "any_of": [{"field": "rows", "exists": True}]},
        {"all_of": [{"field": "rows", "exists": True}] * 51},
        {"all_of": [{"any_of": [{"field": "rows", "exists": True}] * 26}] * 2},
        nested(6),
        {"field": "subject", "matches": ".*"},
    ],
)
def test_given_what_is_no_filter_then_it_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Filter.model_validate(fields)


def test_given_bounds_then_what_is_on_them_is_allowed() -> None:
    assert Filter.model_validate(nested(5)).depth == 5
    assert Filter.model_validate({"all_of": [{"field": "rows", "exists": True}] * 50}).comparisons == 50


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(-(10**310))
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "0"]), inner, max_size=3),
    max_leaves=8,
)
COMPARISON = st.fixed_dictionaries(
    {"field": st.sampled_from(["/data", "/data/a", "/data/a/0", "/data/b/a", "subject", "bytes"])},
    optional={
        "equals": st.sampled_from(["x", 0, True]),
        "prefix": st.just("x"),
        "above": st.just(0),
        "at_most": st.just(1.5),
        "exists": st.just(True),
    },
).filter(lambda fields: len(fields) > 1)


@given(data=JSON, fields=COMPARISON)
def test_given_any_event_then_a_filter_answers_and_its_negation_says_the_opposite(
    data: Any, fields: dict[str, Any]
) -> None:
    event = CustomEvent.model_validate({"type": "custom.x", "namespace": "n", "data": data})
    assert holds(event, **fields) is not holds(event, **{"not": fields})
    read = Filter.model_validate(fields)
    assert Filter.model_validate_json(read.canonical_json()) == read


@pytest.mark.parametrize("pointer", ["/data/a~2b", "/data/~"])
def test_given_a_pointer_with_a_wrong_escape_then_the_schedule_is_refused(pointer: str) -> None:
    """RFC 6901 has no such pointer: whoever meant ~0 or ~1 compares another field. One that is stored is read on as it was."""
    where = {"all_of": [{"field": "subject", "exists": True}, {"not": {"field": pointer, "equals": 1}}]}
    leaf = {"type": "event", "name": "custom.truck", "where": where}
    target = {"type": "program", "program": {"type": "python", "file": "/a.py"}}
    for trigger, place in ((leaf, "trigger.where"), (all_of(leaf, on_data()), "trigger.triggers[0].where")):
        with pytest.raises(InvalidInput) as refused:
            parse_schedule({"namespace": "n", "name": "a", "target": target, "trigger": trigger})
        assert [problem.field for problem in refused.value.problems] == [place]
