"""Tables on a terminal, wide or narrow."""

from __future__ import annotations

import io
import re
import sys

import pytest

from tests.unit.tidegate_cli.conftest import RUN, FakeApi, a_run
from tidegate_cli import main

REASON = "the day was not landed, and nobody knows when it will be"


class Terminal(io.StringIO):
    """Where a person looks."""

    def isatty(self) -> bool:
        return True


def on_a_terminal(columns: int, *arguments: str) -> list[str]:
    terminal = Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setattr(sys, "stdout", terminal)
        assert main.run(arguments) == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()


@pytest.mark.parametrize("columns", [10, 80, 100, 140, 200])
def test_given_any_width_then_an_id_is_in_one_piece(api: FakeApi, columns: int) -> None:
    """At 80 columns it stood in four pieces below each other, and at 30 nothing was left."""
    api.answers["GET /runs"] = (200, {"items": [a_run(reason=REASON)]})
    lines = on_a_terminal(columns, "run", "list")
    (row,) = [line for line in lines if RUN in line]
    assert "2026-11-20 22:00:00Z" in row
    drawn = any("─" in line for line in lines)
    assert drawn is (columns >= 140)
    assert not drawn or max(map(len, lines)) <= columns
    assert REASON in row or columns == 140


def test_given_no_rows_then_the_headings_are_shown(api: FakeApi) -> None:
    api.answers["GET /runs"] = (200, {"items": []})
    for columns in (20, 200):
        assert "schedule" in "\n".join(on_a_terminal(columns, "run", "list")).lower()
