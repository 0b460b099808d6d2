"""docs/outages.md names what is there: tests, phases of the chaos rig, log events, metrics, reasons; and each phase has its section."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.chaos.nemeses import NEMESES
from tidegate_core.explain.why.reason import CODES
from tidegate_telemetry.log_events import LOG_EVENTS
from tidegate_telemetry.metric_names import METRICS

LABELS = ("Stops", "Goes on", "You see", "Normal again", "Shown by")
"""Of the items of a failure's section, in this order."""
SECTION = re.compile(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"^- \*\*([\w ]+):\*\*\s(.*?)(?=^- \*\*|\Z)", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
WORD = re.compile(r"`([a-z]+(?:[_/][a-z]+)+)(?:\{[^`]*\})?`")
OTHER_WORDS = frozenset(
    {"owner_silent", "reading_stands", "messages_late", "fires_late", "starts_late", "report_partition", "no_report"}
)
"""Promises of the watchdog, what programs call, and why a run failed whose program said nothing."""


@pytest.fixture(scope="module")
def rows(root: Path) -> list[list[str]]:
    """Returns the failure and its items' texts, section by section."""
    page = (root / "docs/outages.md").read_text(encoding="utf-8")
    sections = [(failure, ITEM.findall(body)) for failure, body in SECTION.findall(page)]
    wrong = [failure for failure, items in sections if tuple(label for label, _ in items) != LABELS]
    assert wrong == []
    return [[failure, *(" ".join(text.split()) for _, text in items)] for failure, items in sections]


def test_given_a_failure_then_it_says_everything_and_what_shows_it(rows: list[list[str]]) -> None:
    assert rows
    assert [row[0] for row in rows if not all(row)] == []
    unshown = [
        row[0] for row in rows if not TEST.search(row[-1]) and "phase" not in row[-1] and "not shown" not in row[-1]
    ]
    assert unshown == []


def test_given_a_test_that_is_named_then_it_is_there(rows: list[list[str]], root: Path) -> None:
    named = {match for row in rows for match in TEST.findall(row[-1])}
    assert named
    tests = {file: _tests_of(root / file) for file, _ in named}
    assert [f"{file}::{name}" for file, name in sorted(named) if name not in {"", *tests[file]}] == []
    assert sorted(file for file, names in tests.items() if not names) == []


def test_given_the_phases_then_each_has_a_section_and_no_other_is_named(rows: list[list[str]]) -> None:
    named = {
        name
        for row in rows
        for part in re.findall(r"phases? ((?:`[^`]+`(?:, )?)+)", row[-1])
        for name in re.findall(r"`([^`]+)`", part)
    }
    assert {name for name in named if not name.startswith("tests/")} == set(NEMESES)


def test_given_a_name_of_an_event_a_metric_or_a_reason_then_it_exists(rows: list[list[str]]) -> None:
    known = {*LOG_EVENTS, *METRICS, *CODES, *OTHER_WORDS}
    words = {word for row in rows for cell in row[:-1] for word in WORD.findall(cell)}
    assert words & set(METRICS)
    assert words & set(LOG_EVENTS)
    assert sorted(words - known) == []


def _tests_of(file: Path) -> set[str]:
    if not file.exists():
        return set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
