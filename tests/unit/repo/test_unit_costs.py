"""The costs that docs/internals/scale.md states are those of the production actor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.capacity_costs import A_MONTH_AWAY, LIVES, life, row, runs_for
from tests.support.builders import MINUTE

LONG = "a day of a schedule that is due later"
"""7 s of CPU: a day of virtual time. The quick tier counts an hour of it."""


@pytest.fixture
def rows(root: Path) -> list[str]:
    lines = (root / "docs" / "internals" / "scale.md").read_text(encoding="utf-8").splitlines()
    begin = lines.index("| what | write units | of them by transaction |")
    return lines[begin + 2 : lines.index("", begin)]


@pytest.mark.parametrize(
    "title", [pytest.param(title, marks=[pytest.mark.nightly] if title == LONG else []) for title in LIVES]
)
def test_given_the_page_on_scale_then_each_row_is_what_such_a_life_costs(title: str, rows: list[str]) -> None:
    assert row(title) in rows


def test_given_a_schedule_that_is_due_later_then_an_hour_of_it_costs_nothing() -> None:
    assert not any(life("an hour of it", 1, runs_for(60 * MINUTE), A_MONTH_AWAY).units.values())


def test_given_the_page_on_scale_then_its_table_has_the_rows_that_are_counted(rows: list[str]) -> None:
    assert [each.split("|")[1].strip() for each in rows] == [*LIVES]
