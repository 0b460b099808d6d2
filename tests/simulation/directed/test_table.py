"""Every hole and every rule has a test, and every test that the tables name exists."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.simulation.directed.table import HOLES, RULES, Table, place_of

ROOT = Path(__file__).parents[3]
HOLES_KNOWN = [f"H{number}" for number in range(1, 21)]


@cache
def functions_of(file: str) -> frozenset[str]:
    """Returns the names of a file's functions; none when there is no such file."""
    path = ROOT / file
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_given_the_holes_of_the_first_design_then_each_has_a_test() -> None:
    assert list(HOLES) == HOLES_KNOWN


@pytest.mark.parametrize("table", [HOLES, RULES], ids=["holes", "rules"])
def test_given_a_test_that_a_table_names_then_it_exists(table: Table) -> None:
    named = {what: [place_of(name) for name in names] for what, names in table.items()}
    missing = {
        what: [f"{file}::{name}" for file, name in places if name not in functions_of(file)]
        for what, places in named.items()
    }
    assert {what: places for what, places in missing.items() if places} == {}
    assert all(named.values())


def test_given_a_test_in_this_folder_then_a_table_says_what_it_shows() -> None:
    """A directed test without a rule is a test of something else, and belongs beside that."""
    named = {place_of(name) for table in (HOLES, RULES) for names in table.values() for name in names}
    folder = "tests/simulation/directed"
    here = {
        (f"{folder}/{path.name}", name)
        for path in (ROOT / folder).glob("test_*.py")
        if path.name != Path(__file__).name
        for name in functions_of(f"{folder}/{path.name}")
        if name.startswith("test_")
    }
    assert here - named == set()
