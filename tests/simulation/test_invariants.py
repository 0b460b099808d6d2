"""The invariants over many seeds: production actors, decisions and transactions in hostile, invented worlds (DESIGN 2).

A seed that fails is replayed with `python -m tests.simulation --seed S --trace`, and made small with `--minimise`.
"""

from __future__ import annotations

import pytest

from tests.simulation.judging import MEDIANS_MIN, Judge, medians
from tests.simulation.runner.outcome import simulate

SEEDS = 400
SEEDS_PER_TEST = 25
"""Tests of half a minute each, so that workers share them evenly; several times that on a machine that does other things too."""
CALM_SEEDS = range(6)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_given_a_hostile_world_then_every_invariant_holds(first: int, judge: Judge) -> None:
    found = medians(judge(range(first, first + SEEDS_PER_TEST)))
    assert all(found[name] >= least for name, least in MEDIANS_MIN.items()), found


@pytest.mark.parametrize("number", CALM_SEEDS)
def test_given_a_world_without_faults_then_every_invariant_holds(number: int) -> None:
    outcome = simulate(number, faults=False)
    assert not outcome.violations, outcome.story()
    # What users do on their own is no fault: else "so many kinds of fault bit" would hold in every world.
    assert outcome.kinds == []
