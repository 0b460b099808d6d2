"""The schedules that the documentation shows are schedules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tidegate_core.model.parsing import parse_schedule
from tidegate_testkit.builders import Doc

PAGE = (Path(__file__).parents[4] / "docs" / "schedules.md").read_text(encoding="utf-8")
SHOWN: list[Doc] = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


@pytest.mark.parametrize("document", [pytest.param(each, id=each["name"]) for each in SHOWN if "kind" in each])
def test_given_a_schedule_of_the_documentation_then_it_is_accepted_as_it_stands(document: Doc) -> None:
    spec = parse_schedule(document)
    assert (spec.namespace, spec.name) == (document["namespace"], document["name"])
