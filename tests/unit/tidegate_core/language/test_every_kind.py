"""Each kind of each union: an example that reads back from its stored form, and a place in the documentation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from tidegate_core.language.constraints import Constraint
from tidegate_core.language.definitions.run_policies import Retry
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec, Target
from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent
from tidegate_core.language.events.trigger_facts import RunFact, fact_from_json, fact_to_json
from tidegate_core.language.formats.parsing import parse_events, parse_request
from tidegate_core.language.formats.run_record import RunRecord
from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.language.requests.requests import REQUEST_TYPES, Request
from tidegate_core.language.targets.programs import Program, ProgramTarget
from tidegate_core.language.triggers import Trigger
from tidegate_core.language.values.document import Document, PlannedKinds

DOCS = Path(__file__).parents[4] / "docs"
DOCUMENTATION = "\n".join(
    (DOCS / name).read_text(encoding="utf-8") for name in ("schedules.md", "messages.md", "events.md")
)
UNIONS: dict[str, Any] = {"trigger": Trigger, "constraint": Constraint, "program": Program, "target": Target}


def members(union: Any) -> tuple[type[Document], ...]:
    found: tuple[type[Document], ...] = get_args(get_args(union)[0])
    return found


def kind_of(model: type[Document]) -> str:
    return str(model.model_fields["type"].default)


KINDS = [pytest.param(union, model, id=kind_of(model)) for union in UNIONS.values() for model in members(union)]


@pytest.mark.parametrize(("union", "model"), KINDS)
def test_given_each_kind_then_its_example_reads_back_from_its_stored_form(union: Any, model: type[Document]) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(union)
    example = adapter.validate_python(model.EXAMPLE)

    assert type(example) is model
    assert adapter.validate_json(example.canonical_json()) == example
    assert adapter.validate_python(json.loads(example.canonical_json())).canonical_json() == example.canonical_json()


@pytest.mark.parametrize(("union", "model"), KINDS)
def test_given_each_kind_then_the_documentation_has_a_row_for_it(union: Any, model: type[Document]) -> None:
    assert f"| `{kind_of(model)}` |" in DOCUMENTATION


@pytest.mark.parametrize(("union", "model"), KINDS)
def test_given_each_kind_then_it_is_no_longer_planned(union: Any, model: type[Document]) -> None:
    planned = next(note for note in get_args(union) if isinstance(note, PlannedKinds))

    assert kind_of(model) not in planned.kinds


@pytest.mark.parametrize("model", get_args(Request), ids=kind_of)
def test_given_each_request_then_its_example_reads_back(model: type[Any]) -> None:
    request = parse_request(json.dumps(model.EXAMPLE).encode())

    assert type(request) is model
    assert parse_request(request.to_json()) == request
    assert REQUEST_TYPES[kind_of(model)] is model
    assert f"| `{kind_of(model)}` |" in DOCUMENTATION


@pytest.mark.parametrize("model", [DataPartitionEvent, CustomEvent])
def test_given_each_event_then_its_example_reads_back(model: type[Document]) -> None:
    """CD-007."""
    (event,) = parse_events(json.dumps(model.EXAMPLE).encode())

    assert type(event) is model
    assert parse_events(event.canonical_json().encode()) == (event,)


@pytest.mark.parametrize("model", [DataPartitionEvent, RunFact])
def test_given_each_fact_then_its_row_reads_back(model: type[DataPartitionEvent] | type[RunFact]) -> None:
    fact = model.model_validate(model.EXAMPLE)

    assert fact_from_json(fact_to_json(fact)) == fact


@pytest.mark.parametrize("model", [ScheduleSpec, ProgramTarget, Retry])
def test_given_other_parts_of_a_schedule_then_their_examples_read_back(model: type[Document]) -> None:
    example = model.model_validate(model.EXAMPLE)

    assert model.model_validate_json(example.canonical_json()) == example


def test_given_outgoing_records_then_their_examples_are_what_is_written() -> None:
    receipt = Receipt.model_validate(Receipt.EXAMPLE)
    record = RunRecord.model_validate(RunRecord.EXAMPLE)

    assert json.loads(receipt.to_json()) == Receipt.EXAMPLE
    assert json.loads(record.to_json()) == {**RunRecord.EXAMPLE, "id": f"{record.run_id}/1/succeeded"}
