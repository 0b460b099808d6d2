"""Sources as users write them: each fault names field, problem and way out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.formats.parsing import parse_source
from tidegate_core.language.values.problems import InvalidInput

GUIDE = Path(__file__).parents[5] / "docs/events.md"


def a_source(event: Any = None, **more: Any) -> dict[str, Any]:
    mapping = {"dataset": "raw", "partition": {"pointer": "/day"}} | (event or {})
    return {"namespace": "flights", "name": "landed", "topic": "lake", "event": mapping} | more


def test_given_a_source_then_its_stored_form_reads_back() -> None:
    spec = parse_source(SourceSpec.EXAMPLE)
    assert SourceSpec.model_validate_json(spec.canonical_json()) == spec


@pytest.mark.parametrize("text", GUIDE.read_text(encoding="utf-8").split("```yaml\n")[1:])
def test_given_the_guide_then_its_sources_are_right(text: str) -> None:
    assert parse_source(yaml.safe_load(text.split("```", maxsplit=1)[0])).kind == "source"


def test_given_a_bare_text_then_it_is_the_same_for_each_record() -> None:
    assert parse_source(a_source()) == parse_source(a_source({"dataset": {"value": "raw"}}))


@pytest.mark.parametrize(
    ("source", "field", "said"),
    [
        pytest.param(a_source(namespace="tidegate"), "namespace", "is tidegate's own", id="own namespace"),
        pytest.param(a_source(topic="a b"), "topic", "is not a topic", id="topic"),
        pytest.param(a_source({"dataset": "A b"}), "event.dataset", "no event may have", id="fixed dataset"),
        pytest.param(a_source({"kind": "moved"}), "event.kind", "no event may have", id="fixed kind"),
        pytest.param(a_source({"bytes": "much"}), "event.bytes", "no event may have", id="fixed bytes"),
        pytest.param(a_source({"id": "always"}), "event.id", "is the same for each record", id="fixed id"),
        pytest.param(a_source({"partition": {}}), "event.partition", "has 0 of value", id="from nowhere"),
        pytest.param(
            a_source({"partition": {"header": "a", "pointer": "/b"}}), "event.partition", "has 2 of value", id="both"
        ),
        pytest.param(
            a_source({"partition": {"pointer": "day"}}), "event.partition.pointer", "is no JSON pointer", id="no slash"
        ),
        pytest.param(
            a_source({"partition": {"pointer": "/a~2b"}}),
            "event.partition.pointer",
            "neither ~0 nor ~1",
            id="wrong escape",
        ),
        pytest.param(a_source({"id": {"pointer": "/a~"}}), "event.id.pointer", "neither ~0 nor ~1", id="open escape"),
        pytest.param(a_source({"partition": {"pointer": "/" * 257}}), "event.partition.pointer", "", id="long"),
        pytest.param(a_source({"namespace": "x"}), "event.namespace", "", id="the namespace is the source's"),
        pytest.param(a_source(dataset="raw"), "dataset", "", id="one level too high"),
        pytest.param(a_source(labels={}), "labels", "is planned for", id="planned"),
        pytest.param(a_source(kind="schedule"), "kind", "", id="a schedule"),
    ],
)
def test_given_a_faulty_source_then_field_and_problem_are_named(source: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_source(source)
    (problem,) = refused.value.problems
    assert problem.field == field
    assert said in problem.problem


def test_given_names_outside_then_those_inside_may_be_left_out_but_not_differ() -> None:
    source = a_source()
    del source["name"]
    assert parse_source(source, namespace="flights", name="landed").name == "landed"
    with pytest.raises(InvalidInput, match="differs from the request's"):
        parse_source(a_source(), namespace="flights", name="other")


def test_given_a_stored_source_with_a_wrong_escape_then_it_is_still_read() -> None:
    """It was taken once: unreadable, it would stop the reading of its topic for all of its sources."""
    spec = SourceSpec.model_validate_json(json.dumps(a_source({"partition": {"pointer": "/a~2b"}})))
    assert SourceSpec.model_validate_json(spec.canonical_json()) == spec
