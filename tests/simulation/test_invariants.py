"""The invariants over many seeds: production actors, decisions and transactions in hostile, invented worlds (DESIGN 2).

A seed that fails is replayed with `python -m tidegate_testkit.simulation --seed S --trace`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidegate_testkit.simulation.outcome import Outcome, simulate
from tidegate_testkit.simulation.regression_seeds import REGRESSION_SEEDS

SEEDS = 208
SEEDS_PER_TEST = 8
"""Tests of some seconds each, so that workers share them evenly."""
CALM_SEEDS = range(6)


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_given_a_hostile_world_then_every_invariant_holds(first: int, judge: Callable[[int], Outcome]) -> None:
    for number in range(first, first + SEEDS_PER_TEST):
        judge(number)


@pytest.mark.parametrize("number", [number for number in REGRESSION_SEEDS if number >= SEEDS])
def test_given_a_seed_that_once_failed_then_every_invariant_holds(number: int, judge: Callable[[int], Outcome]) -> None:
    judge(number)


@pytest.mark.parametrize("number", CALM_SEEDS)
def test_given_a_world_without_faults_then_every_invariant_holds(number: int) -> None:
    outcome = simulate(number, faults=False)
    assert not outcome.violations, outcome.story()
    # What users do on their own is no fault: else "so many kinds of fault bit" would hold in every world.
    assert outcome.kinds == []
