"""The published run of seeds has what was asked for, and what the documentation says of it is what its figures say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.runner.fault_coverage import Pair, below
from tests.simulation.runner.figures import MET_MIN

SEEDS_MIN = 30_000
MEDIANS_MIN = {"fires": 50, "events": 50, "faults": 5}
"""Of a seed, as was asked for."""

AS_DRAWN = "simulation.json"
WITH_TRAPS = "simulation-traps.json"
"""Of further seeds, all of them in worlds with the traps in which the rarest pairs of a fault and a call meet."""


def _published(root: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((root / "docs" / "figures" / name).read_text(encoding="utf-8")))


def _met(figures: dict[str, Any]) -> Counter[Pair]:
    return Counter({(kind, at): times for kind, places in figures["coverage"].items() for at, times in places.items()})


@pytest.fixture(params=[AS_DRAWN, WITH_TRAPS])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def figures(root: Path, name: str) -> dict[str, Any]:
    return _published(root, name)


def test_given_published_seeds_then_none_has_a_violation_and_the_medians_are_what_was_asked_for(
    figures: dict[str, Any],
) -> None:
    assert (figures["violations"], figures["seeds_with_violations"]) == (0, [])
    medians = figures["medians_per_seed"]
    assert {name: medians[name] for name, least in MEDIANS_MIN.items() if medians[name] < least} == {}


def test_given_their_figures_then_they_are_those_of_all_their_seeds(figures: dict[str, Any]) -> None:
    for name, total in figures["totals"].items():
        seeds_with = {int(number): seeds for number, seeds in figures["per_seed"][name].items()}
        assert sum(seeds_with.values()) == figures["seeds"]
        assert sum(number * seeds for number, seeds in seeds_with.items()) == total


def test_given_the_published_run_then_it_has_as_many_seeds_as_were_asked_for(root: Path) -> None:
    assert _published(root, AS_DRAWN)["seeds"] >= SEEDS_MIN


def test_given_both_files_then_each_kind_of_fault_met_each_call_a_thousand_times(root: Path) -> None:
    assert below(_met(_published(root, AS_DRAWN)) + _met(_published(root, WITH_TRAPS)), MET_MIN) == []


def test_given_the_page_then_it_says_what_the_files_say(root: Path, name: str, figures: dict[str, Any]) -> None:
    totals = figures["totals"]
    page = (root / "docs" / "guarantees.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if f"(figures/{name})" in line]
    assert f"SEEDS={figures['seeds']} FROM={figures['first_seed']}" in row
    assert f"{figures['seeds']:,} seeds, 0 violations" in row
    assert f"{totals['fires']:,} fires, {totals['events']:,} events" in row
