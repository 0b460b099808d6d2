"""What the documentation shows works: each schedule passes a dry run, each part of one fits into one, and each kind is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from tests.support.builders import Doc
from tidegate_core.language.constraints import Constraint
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.definitions.schedule_validation import check_schedule, schedule_warnings
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.triggers import TimeTrigger, Trigger
from tidegate_core.language.triggers.preview import preview
from tidegate_core.language.values.instants import parse_instant
from tidegate_ports.common.yaml_core_schema import CoreSchemaLoader

DOCS = Path(__file__).parents[4] / "docs"
PAGE = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in ("schedules.md", "messages.md"))
NOW = parse_instant("2026-11-20T22:00:00Z")
SHOWN: list[Doc] = [yaml.load(text, CoreSchemaLoader) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
SCHEDULES = [pytest.param(each, id=each["name"]) for each in SHOWN if "kind" in each]
FRAGMENTS = [
    pytest.param(each, id=f"{number}-{next(iter(each))}") for number, each in enumerate(SHOWN) if "kind" not in each
]
IN_TABLES: list[Doc] = [
    yaml.load(text, CoreSchemaLoader) for text in re.findall(r"^\| `\w+` \| `(\{type: .*?\})` \|", PAGE, re.MULTILINE)
]
PROGRAM = {"program": {"type": "python", "file": "jobs/a.py"}}
POLICIES = ("overlap", "priority", "catchup", "retry", "pending_timeout", "pending_timeout_action", "suspend_mode", "on_update", "preset", "labels")  # fmt: skip


def kinds(union: Any) -> set[str]:
    return {str(model.model_fields["type"].default) for model in get_args(get_args(union)[0])}


def types_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (str(given) for name, given in value.items() if name == "type")
        yield from (each for inner in value.values() for each in types_in(inner))
    elif isinstance(value, list):
        yield from (each for inner in value for each in types_in(inner))


def dry_run(document: Doc) -> ScheduleSpec:
    """What `schedule apply --dry-run` does with it, and `schedule next` where it is about time."""
    spec = parse_schedule(document)
    assert check_schedule(spec, now=NOW) == ()
    assert schedule_warnings(spec, NOW) == []
    if isinstance(spec.trigger, TimeTrigger):
        assert preview(spec.trigger, f"{spec.namespace}/{spec.name}", NOW, count=3)
    return spec


@pytest.mark.parametrize("document", SCHEDULES)
def test_given_a_schedule_of_the_documentation_then_it_passes_a_dry_run_as_it_stands(document: Doc) -> None:
    spec = dry_run(document)
    assert (spec.namespace, spec.name) == (document["namespace"], document["name"])


@pytest.mark.parametrize("fields", FRAGMENTS)
def test_given_a_part_of_a_schedule_then_it_passes_a_dry_run_within_one(fields: Doc) -> None:
    dry_run({"namespace": "docs", "name": "a", "target": PROGRAM, **fields})


@pytest.mark.parametrize("part", IN_TABLES, ids=lambda part: part["type"])
def test_given_an_example_in_a_table_then_it_passes_a_dry_run_within_a_schedule(part: Doc) -> None:
    daily = {"type": "cron", "expression": "@daily"}
    is_trigger = part["type"] in kinds(Trigger)
    fields: Doc = {"trigger": part} if is_trigger else {"trigger": daily, "constraints": [part]}
    dry_run({"namespace": "docs", "name": "a", "target": PROGRAM, **fields})


def test_given_the_page_then_each_kind_and_each_policy_is_shown_in_a_document_that_can_be_applied() -> None:
    assert (kinds(Trigger) | kinds(Constraint)) - set(types_in([*SHOWN, *IN_TABLES])) == set()
    assert set(POLICIES) - {field for document in SHOWN for field in document} == set()
