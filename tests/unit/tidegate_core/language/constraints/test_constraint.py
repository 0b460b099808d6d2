"""The closed list of reason codes: what code uses, what is documented, and what the type allows are one list."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import yaml

from tidegate_core.language.constraints.constraint import REASONS, ReasonCode
from tidegate_core.language.formats.parsing import parse_schedule

DOCUMENTATION = (Path(__file__).parents[5] / "docs" / "schedules.md").read_text(encoding="utf-8")


def test_given_each_code_then_it_is_described_in_the_list_and_in_the_documentation() -> None:
    assert set(REASONS) == set(get_args(ReasonCode))
    for code, meaning in REASONS.items():
        assert f"| `{code}` | {meaning} |" in DOCUMENTATION


def test_given_the_documentations_schedules_then_each_of_them_is_valid() -> None:
    blocks = [block.split("```")[0] for block in DOCUMENTATION.split("```yaml\n")[1:]]
    documents = [each for block in blocks for each in yaml.safe_load_all(block)]
    schedules = [each for each in documents if isinstance(each, dict) and each.get("kind") == "schedule"]
    assert len(schedules) >= 3
    for document in schedules:
        assert parse_schedule(document).name == document["name"]
