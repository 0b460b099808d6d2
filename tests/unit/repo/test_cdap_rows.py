"""Each row of CDAP's scheduler that was asked for has a test that names it, or a decision that says why there is none."""

import ast
import re
from pathlib import Path

import pytest

ROWS = [
    row
    for line in (Path(__file__).parent / "cdap_rows.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
    for row in line.split()
]
ROW = re.compile(r"\b(?:CD-\d{3}|US-\d{2}|TS-\d{2})\b")
DECIDED_OTHERWISE_MAX = 10


def rows_in_docstrings(file: Path) -> set[str]:
    """Returns the rows that a test, or the module around it, names as its own."""
    source = file.read_text(encoding="utf-8")
    if ROW.search(source) is None:
        return set()
    nodes = ast.walk(ast.parse(source))
    documented = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    texts = (ast.get_docstring(node) or "" for node in nodes if isinstance(node, documented))
    return {row for text in texts for row in ROW.findall(text)}


@pytest.fixture(scope="module")
def tested(root: Path) -> set[str]:
    files = [file for file in (root / "tests").rglob("test_*.py") if file != Path(__file__)]
    return {row for file in files for row in rows_in_docstrings(file)}


@pytest.fixture(scope="module")
def decided(root: Path) -> set[str]:
    pages = (root / "docs" / "internals" / "decisions").glob("*.md")
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    return {row for line in lines if line.startswith("| ") for row in ROW.findall(line.split("|")[1])}


def test_given_the_list_then_no_row_stands_in_it_twice() -> None:
    assert len(ROWS) == len(set(ROWS))


@pytest.mark.parametrize("row", ROWS)
def test_given_a_row_that_was_asked_for_then_a_test_names_it_or_a_decision_does(
    row: str, tested: set[str], decided: set[str]
) -> None:
    assert row in tested | decided


def test_given_rows_without_a_test_then_they_are_few(tested: set[str]) -> None:
    assert len(set(ROWS) - tested) <= DECIDED_OTHERWISE_MAX
