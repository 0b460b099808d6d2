"""Figures of a run that was made in parts are those of the run made at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.simulation.__main__ import main
from tests.simulation.runner.figures import Figures
from tests.simulation.runner.outcome import Outcome


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


@pytest.mark.parametrize(("second", "told"), [(4, "seed 4 is in two"), (6, "seed 5 is in none")])
def test_given_a_seed_that_is_in_two_parts_or_between_them_then_they_are_not_added_up(
    tmp_path: Path, second: int, told: str
) -> None:
    parts = [written(tmp_path, figures_of(first, 4)) for first in (1, second)]
    with pytest.raises(ValueError, match=told):
        Figures.of_parts(parts)


def test_given_a_sum_that_was_written_then_the_next_part_is_added_to_it(tmp_path: Path) -> None:
    so_far = tmp_path / "so-far.json"
    for first in (5, 8, 20):
        part = written(tmp_path, figures_of(first, 3 if first == 5 else 12))
        parts = [so_far, part] if so_far.exists() else [part]
        main(["--figures", str(so_far), "--merge", *map(str, parts)])
    assert list(Figures.of_parts([so_far]).lines()) == list(figures_of(5, 27).lines())
