"""`tidegate partitions grow`: what is typed is handed to the process."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate_cli import main
from tidegate_cli.commands import partitions
from tidegate_cli.service_processes import GROW


def test_given_a_number_then_it_is_grown_to(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(partitions, "become", lambda process, **options: begun.append((process, options)))
    assert main.run(["partitions", "grow", "12"]) == 0
    assert begun == [(GROW, {"number": 12})]


@pytest.mark.parametrize("typed", [["grow", "0"], ["grow"], ["grow", "many"]], ids=" ".join)
def test_given_no_number_then_it_is_a_matter_of_usage(typed: list[str]) -> None:
    assert main.run(["partitions", *typed]) == 2


def test_given_help_then_it_says_that_there_is_no_way_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["partitions", "grow", "--help"]) == 0
    assert "no way back" in " ".join(capsys.readouterr().out.split())
