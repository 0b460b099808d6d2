"""Figures of a run that was made in parts are those of the run made at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tidegate_testkit.simulation.figures import Figures
from tidegate_testkit.simulation.outcome import Outcome


def an_outcome(seed: int) -> Outcome:
    return Outcome(
        seed=seed,
        nodes=3,
        fires=seed % 7,
        events=seed % 5,
        messages=2 * seed,
        faults=Counter({("late_applied", "admit"): seed % 3, ("crash", "on fire"): 1}),
        calls=Counter({"admit": seed}),
        violations=["I1: planted"] if seed == 13 else [],
    )


def figures_of(first: int, seeds: int) -> Figures:
    figures = Figures(first)
    for seed in range(first, first + seeds):
        figures.add(an_outcome(seed))
    return figures


def written(folder: Path, figures: Figures) -> Path:
    file = folder / f"{figures.first}.json"
    figures.write(file)
    return file


def test_given_a_run_in_parts_then_their_sum_says_what_one_run_says(tmp_path: Path) -> None:
    parts = [written(tmp_path, figures_of(first, seeds)) for first, seeds in ((20, 3), (5, 15))]
    whole, at_once = Figures.of_parts(parts), figures_of(5, 18)
    assert list(whole.lines()) == list(at_once.lines())
    assert whole.line() == at_once.line()
    assert whole.failed == [13]


def test_given_a_seed_that_is_in_two_parts_then_they_are_not_added_up(tmp_path: Path) -> None:
    parts = [written(tmp_path, figures_of(first, 4)) for first in (1, 4)]
    with pytest.raises(ValueError, match="seed 4 is in two"):
        Figures.of_parts(parts)
