"""The page of all fields is what the models say, and leaves no field without a meaning."""

from __future__ import annotations

import re
from pathlib import Path

from tidegate_core.language.formats.field_reference import field_tables

PAGE = Path(__file__).parents[5] / "docs" / "fields.md"


def test_given_the_models_then_the_committed_page_is_theirs() -> None:
    """If not: `make schemas`."""
    assert PAGE.read_text(encoding="utf-8") == field_tables()


def test_given_a_field_then_the_page_says_what_it_means() -> None:
    silent = [line for line in field_tables().splitlines() if line.startswith("| `") and line.endswith("|  |")]
    assert silent == []


def test_given_a_part_that_is_referred_to_then_it_has_a_table() -> None:
    page = field_tables()
    headings = {line.removeprefix("## ").lower() for line in page.splitlines() if line.startswith("## ")}
    assert set(re.findall(r"\(#(\w+)\)", page)) <= headings
