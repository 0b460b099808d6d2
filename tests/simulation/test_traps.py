"""Traps in worlds that are calm otherwise: moments that chance alone hardly makes, each of which has its mutant as well."""

from __future__ import annotations

import pytest

from tidegate_testkit.simulation.drawing import swarm_of, trapped
from tidegate_testkit.simulation.faults.traps import TRAPS
from tidegate_testkit.simulation.on_all_cores import Worlds
from tidegate_testkit.simulation.outcome import simulate

SEEDS = (0, 1, 3)
"""In their worlds each trap bites."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TRAPS)
def test_given_a_trap_then_every_invariant_holds(name: str, seed: int) -> None:
    outcome = simulate(seed, swarm=trapped(swarm_of(seed, faults=False), seed, name))
    assert not outcome.violations, outcome.story()
    assert TRAPS[name].bites in {None, *outcome.kinds}, "nothing bit"


def test_given_a_hundred_runs_that_go_one_at_a_time_then_their_world_comes_to_rest() -> None:
    """Seed 43001018 with these traps: it was told to be at rest five minutes after it had healed, amid the runs that it owed."""
    outcome = simulate(43001018, swarm=Worlds(traps=("stubborn", "sources", "rarest")).swarm(43001018))
    assert not outcome.violations, outcome.story()
