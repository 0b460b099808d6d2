"""The published JSON Schemas are those of the models: a change of a contract shows in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate_core.language.formats.json_schemas import schemas

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
