"""Filters that no event could pass are refused where the schedule is parsed, each comparison at its own place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import all_of, on_data
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.triggers.on_event.event_filter import Filter
from tidegate_core.language.triggers.unmatchable_filters import vain_filter_problems
from tidegate_core.language.values.problems import InvalidInput

TARGET = {"type": "program", "program": {"type": "python", "file": "/a.py"}}


def told(where: dict[str, Any], **leaf: Any) -> list[str]:
    trigger = {"type": "data_partitions", "dataset": "sales", "count": 1, **leaf, "where": where}
    try:
        parse_schedule({"namespace": "n", "name": "a", "target": TARGET, "trigger": trigger})
    except InvalidInput as refusal:
        return [str(problem) for problem in refusal.problems]
    return []


def test_given_a_version_without_quotes_then_the_filter_is_refused_and_says_quote_it() -> None:
    """`equals: 1.10` is a number, and a version is a text: the schedule never fired."""
    assert told({"field": "version", "equals": 1.1}) == [
        'trigger.where.equals: is 1.1, and version is a text; quote it: "1.1"'
    ]


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ({"field": "partition", "in": ["SE", False, "DK"]}, "in[1]: is false, and partition is a text; quote it"),
        ({"field": "producer", "above": 5}, "above: is a number, and producer is a text"),
        ({"field": "kind", "equals": "create"}, 'equals: "create" is no kind of event; did you mean created?'),
        ({"field": "bytes", "equals": "1024"}, "equals: is a text, and bytes is a number"),
        ({"field": "rows", "in": [1, 2.5]}, "in[1]: is 2.5, and rows is a whole number from 0 on"),
        ({"field": "rows", "equals": -1}, "equals: is -1, and rows is a whole number"),
        ({"field": "bytes", "equals": True}, "equals: is true, and bytes is a whole number"),
        ({"field": "bytes", "prefix": "10"}, "prefix: is a text, and bytes is a number"),
        ({"field": "bytes", "below": 0}, "where: can never be true"),
        ({"field": "rows", "above": 5, "below": 6}, "where: can never be true"),
        ({"field": "rows", "equals": 5, "above": 5}, "where: can never be true"),
        ({"field": "partition", "in": ["a", "b"], "prefix": "c"}, "where: can never be true"),
        ({"field": "version", "equals": "1", "exists": False}, "where: can never be true"),
        ({"field": "partition", "exists": False}, "where.exists: can never be true"),
        ({"field": "kind", "equals": "replaced"}, "where: can never be true: of this trigger's kinds only created"),
        ({"field": "subject", "equals": "x"}, "where.field: data events have no field subject"),
        ({"field": "/data/x", "equals": "x"}, "where.field: data events have no field /data/x"),
    ],
)
def test_given_a_comparison_that_holds_for_no_event_then_its_place_is_told(where: dict[str, Any], place: str) -> None:
    (problem,) = told(where)
    assert place in problem


def test_given_a_custom_event_then_what_it_cannot_have_is_told() -> None:
    leaf = {"type": "event", "name": "custom.truck", "count": 1}
    trigger = {**leaf, "where": {"any_of": [{"field": "subject", "exists": True}, {"field": "rows", "above": 1}]}}
    with pytest.raises(InvalidInput, match=r"trigger\.where\.any_of\[1\]\.field: custom events have no field rows"):
        parse_schedule({"namespace": "n", "name": "a", "target": TARGET, "trigger": trigger})


def test_given_a_leaf_of_a_composite_then_its_path_is_told() -> None:
    leaf = {"type": "event", "name": "custom.x", "where": {"not": {"field": "subject", "equals": 7}}}
    with pytest.raises(InvalidInput) as refused:
        parse_schedule({"namespace": "n", "name": "a", "target": TARGET, "trigger": all_of(leaf, on_data())})
    assert [problem.field for problem in refused.value.problems] == ["trigger.triggers[0].where.not.equals"]


@pytest.mark.parametrize(
    "where",
    [
        {"field": "version", "equals": "1.10"},
        {"field": "bytes", "at_least": 0, "below": 1},
        {"field": "bytes", "equals": 5.0},
        {"field": "rows", "above": 4.5, "at_most": 5},
        {"field": "rows", "exists": False},
        {"field": "kind", "prefix": "cr"},
        {"not": {"field": "kind", "equals": "replaced"}},
        {"not": {"field": "bytes", "below": 0}},
    ],
)
def test_given_a_filter_that_some_event_passes_then_it_is_taken(where: dict[str, Any]) -> None:
    assert told(where) == []


def test_given_the_kind_that_the_trigger_counts_then_the_filter_is_taken() -> None:
    assert told({"field": "kind", "equals": "replaced"}, kinds=["created", "replaced"]) == []


@given(
    where=st.fixed_dictionaries(
        {"field": st.just("rows")},
        optional={
            name: st.integers(-2, 4) | st.sampled_from([0.5, 1.5, 2.5])
            for name in ("above", "at_least", "below", "at_most")
        },
    ).filter(lambda fields: len(fields) > 1)
)
def test_given_bounds_then_they_are_refused_when_and_only_when_no_count_lies_within(where: dict[str, Any]) -> None:
    read = Filter.model_validate(where)
    assert bool(told(where)) is not any(read.holds_in({"rows": count}) for count in range(8))


def test_given_a_leaf_without_a_filter_then_there_is_nothing_to_tell() -> None:
    spec = parse_schedule({"namespace": "n", "name": "a", "target": TARGET, "trigger": on_data()})
    assert vain_filter_problems(spec.trigger, "trigger") == []  # type: ignore[arg-type]
