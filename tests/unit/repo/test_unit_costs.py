"""The costs that docs/scale.md states are those of the production actor."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.capacity_costs import table


def test_given_the_page_on_scale_then_its_table_is_what_the_lives_cost(root: Path) -> None:
    assert table() in (root / "docs" / "scale.md").read_text(encoding="utf-8")
