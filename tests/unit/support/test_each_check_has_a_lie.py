"""A check that could not fail proves nothing: each check, monitor and judge is called by a test that lies to it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.simulation.checks import CHECKS

TESTS = Path(__file__).parents[2]
MONITORS = ("ClassMonitor", "LimitMonitor", "RateMonitor", "StoreMonitor")
FOLDER_OF_LIES = TESTS / "unit" / "support"


def judges() -> list[str]:
    """Returns the judges of real clusters: each public function that judges."""
    files = sorted((TESTS / "support" / "checkers").glob("*.py"))
    nodes = [node for file in files for node in ast.parse(file.read_text(encoding="utf-8")).body]
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("judge_")]


@cache
def called_by_lies() -> frozenset[str]:
    """Returns the names that tests of the kit call, in tests and in what these share."""
    names = set[str]()
    for file in FOLDER_OF_LIES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names.add(node.func.id)
    return frozenset(names)


def test_given_the_judges_then_they_are_found_by_their_names() -> None:
    assert len(judges()) >= 7


@pytest.mark.parametrize("kind", ["checks of worlds", "monitors", "judges of clusters"])
def test_given_what_judges_then_a_lie_is_told_to_each(kind: str) -> None:
    names = {
        "checks of worlds": [check.__name__ for check in CHECKS],
        "monitors": list(MONITORS),
        "judges of clusters": judges(),
    }[kind]
    assert sorted(set(names) - called_by_lies()) == []
