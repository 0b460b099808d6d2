"""What the documentation says of the published run of seeds is what the file of its figures says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

MEDIANS_MIN = {"fires": 50, "events": 50, "faults": 5}
"""Of a seed, as was asked for."""


@pytest.fixture(scope="module")
def figures(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "docs" / "figures" / "simulation.json").read_text(encoding="utf-8")))


def test_given_the_published_run_then_no_seed_has_a_violation_and_the_medians_are_what_was_asked_for(
    figures: dict[str, Any],
) -> None:
    assert (figures["violations"], figures["seeds_with_violations"]) == (0, [])
    medians = figures["medians_per_seed"]
    assert {name: medians[name] for name, least in MEDIANS_MIN.items() if medians[name] < least} == {}


def test_given_its_figures_then_they_are_those_of_all_its_seeds(figures: dict[str, Any]) -> None:
    for name, total in figures["totals"].items():
        seeds_with = {int(number): seeds for number, seeds in figures["per_seed"][name].items()}
        assert sum(seeds_with.values()) == figures["seeds"]
        assert sum(number * seeds for number, seeds in seeds_with.items()) == total


def test_given_the_page_then_it_says_what_the_file_says(root: Path, figures: dict[str, Any]) -> None:
    totals = figures["totals"]
    page = (root / "docs" / "guarantees.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| The published run: ")]
    assert f"FROM={figures['first_seed']}`" in row
    assert f"{figures['seeds']:,} so far" in row
    assert f"{totals['fires']:,} fires, {totals['events']:,} events" in row
