"""The invariants over many seeds: production actors, decisions and transactions in hostile, invented worlds (DESIGN 2).

Which seeds: `seed_windows.py`. A failure names its seed. Replay that with `python -m tests.simulation --seed S --trace`;
`--minimise` makes its world small.
"""

from __future__ import annotations

import pytest

from tests.simulation.judging import GROUP, Judge, shortfalls
from tests.simulation.runner.outcome import simulate
from tests.simulation.seed_windows import seeds_of_suite
from tests.support.tier import at_night

SEEDS = seeds_of_suite()
GROUPS = [SEEDS[at : at + GROUP] for at in range(0, len(SEEDS), GROUP)]
CALM_SEEDS = range(at_night(6, else_=2))


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_given_a_hostile_world_then_every_invariant_holds(group: int, judge: Judge) -> None:
    """Its groups have numbers and no seeds in their names, so that the names stay when the window moves."""
    seeds = GROUPS[group]
    short = shortfalls(judge(seeds))
    assert short == [], f"`python -m tests.simulation --from {seeds.start} --seeds {len(seeds)}` runs them again"


@pytest.mark.parametrize("number", CALM_SEEDS)
def test_given_a_world_without_faults_then_every_invariant_holds(number: int) -> None:
    outcome = simulate(number, faults=False)
    assert not outcome.violations, outcome.story()
    # What users do on their own is no fault: else "so many kinds of fault bit" would hold in every world.
    assert outcome.kinds == []
