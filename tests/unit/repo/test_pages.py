"""Pages of the documentation lead somewhere and can be read: each link has its target, and no cell of a table is a paragraph."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CELL_MAX = 200
"""Characters. What needs more is a list or a section below the table."""
GENERATED = frozenset({"fields.md"})
"""Its cells are docstrings of models."""
CODE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def text_of(page: Path) -> str:
    """Returns a page without its blocks of code."""
    return CODE.sub("", page.read_text(encoding="utf-8"))


def anchor(heading: str) -> str:
    """Returns a heading's anchor, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.fixture(scope="module")
def pages(committed_files: list[Path]) -> list[Path]:
    return [file for file in committed_files if file.suffix == ".md" and file.exists()]


def test_given_a_link_then_its_page_and_its_heading_are_there(pages: list[Path], root: Path) -> None:
    assert root / "README.md" in pages
    headings = {page: {anchor(heading) for heading in HEADING.findall(text_of(page))} for page in pages}
    dead = [
        f"{page.relative_to(root)}: {file}#{name}"
        for page in pages
        for file, name in LINK.findall(text_of(page))
        if not file.startswith(("http:", "https:", "mailto:"))
        for target in [(page.parent / file).resolve() if file else page]
        if not target.exists() or (name and name not in headings.get(target, {name}))
    ]
    assert dead == []


def test_given_a_table_then_none_of_its_cells_is_a_paragraph(pages: list[Path], root: Path) -> None:
    users = [page for page in pages if page.parent in {root, root / "docs"} and page.name not in GENERATED]
    long = [
        f"{page.relative_to(root)}: {cell[:60]}"
        for page in users
        for line in text_of(page).splitlines()
        if line.startswith("|")
        for cell in map(str.strip, line.strip("|").split("|"))
        if len(cell) > CELL_MAX
    ]
    assert long == []
