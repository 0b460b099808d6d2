"""What `schedule get --spec` prints is what `schedule apply -f` reads, and applying it changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.tier import examples
from tidegate_cli.output import Format, dump
from tidegate_cli.yaml_documents import read_documents
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.formats.parsing import parse_schedule

TRIGGERS: list[dict[str, Any]] = [
    {"type": "cron", "expression": "0 6 * * mon-fri", "zone": "Europe/Rome", "start": "2026-01-01T00:00:00+01:00"},
    {"type": "cron", "expression": "@every 90m"},
    {"type": "every", "period": "90m", "phase": "10m"},
    {"type": "at", "instant": "2026-12-24T18:00:00Z"},
    {"type": "data_partitions", "dataset": "flights.raw", "count": 3},
    {"type": "run_status", "schedule": "land-day", "states": ["succeeded"]},
]


def printed(document: Any, output: Format, folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Returns what a file with the printed document is read as."""
    capsys.readouterr()
    dump(document, output)
    file = folder / "again.yaml"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    (found,) = read_documents(file)
    return found.spec


@pytest.mark.parametrize("output", [Format.YAML, Format.JSON])
@pytest.mark.parametrize("trigger", [*TRIGGERS, ScheduleSpec.EXAMPLE["trigger"]])
def test_given_a_stored_definition_then_the_printed_one_is_the_same_version(
    trigger: dict[str, Any], output: Format, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = {"type": "program", "program": {"type": "python", "file": "/jobs/a.py", "env": {"A": "on", "B": "1e3"}}}
    stored = parse_schedule({**ScheduleSpec.EXAMPLE, "target": target, "trigger": trigger, "suspended": True})
    again = parse_schedule(printed(json.loads(stored.canonical_json()), output, tmp_path, capsys))
    assert again.spec_hash() == stored.spec_hash()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(200))
@given(st.text(st.characters(codec="utf-8")), st.sampled_from([Format.YAML, Format.JSON]))
def test_given_any_text_then_it_is_read_back_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, output: Format
) -> None:
    document = {"namespace": "a", "name": "b", "labels": {"x": text, text or "y": "z"}}
    assert printed(document, output, tmp_path, capsys) == document
