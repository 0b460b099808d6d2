"""The page of all fields is what the models say, and leaves no field without a meaning.

The published JSON Schemas are those of the models: a change of a contract shows in a file.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tidegate_core.language.formats.format_reference import field_tables, schemas

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


FOLDER = Path(__file__).parents[5] / "docs" / "schemas"
REGENERATE = "run: make schemas"


@pytest.mark.parametrize("name", sorted(schemas()))
def test_given_models_then_published_schema_is_theirs(name: str) -> None:
    published = (FOLDER / f"{name}.json").read_text(encoding="utf-8")

    assert published == schemas()[name], REGENERATE


def test_given_folder_then_nothing_else_lies_there() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(schemas())


def test_given_schema_then_unknown_fields_are_closed_out_and_defaults_are_texts() -> None:
    schedule = json.loads(schemas()["schedule"])

    assert schedule["additionalProperties"] is False
    assert schedule["properties"]["pending_timeout"]["default"] == "1d"
