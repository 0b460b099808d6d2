"""Traps in worlds that are calm otherwise: moments that chance alone hardly makes, each of which has its mutant as well."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.faults.scenarios import TRAPS
from tests.simulation.runner.fault_coverage import Pair, merged
from tests.simulation.runner.outcome import simulate
from tests.simulation.runner.parallel_runner import Worlds
from tests.simulation.runner.world_drawing import swarm_of, trapped
from tests.simulation.world.cluster import SOURCE_TOPIC

SEEDS = (0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 3)))
"""In their worlds each trap bites; the first of them is enough for the quick tier."""
WITH_RAREST = Worlds(traps=("stubborn", "sources", "rarest"))
"""The worlds of the published seeds with traps."""
SEEDS_OF_RAREST = (43000011, 43000027)
"""In their worlds what it is about meets."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TRAPS)
def test_given_a_trap_then_every_invariant_holds(name: str, seed: int) -> None:
    outcome = simulate(seed, swarm=trapped(swarm_of(seed, faults=False), seed, name))
    assert not outcome.violations, outcome.story()
    assert TRAPS[name].bites in {None, *outcome.kinds}, "nothing bit"


@pytest.mark.nightly
def test_given_the_trap_for_what_hardly_meets_then_it_meets_in_its_worlds() -> None:
    met: Counter[Pair] = Counter()
    for seed in SEEDS_OF_RAREST:
        met += merged(simulate(seed, swarm=WITH_RAREST.swarm(seed)).faults.items())
    wanted = {("crash", "on reject"), ("pause", "on reject"), ("deaf", "program"), ("behind_end", SOURCE_TOPIC)}
    assert wanted <= set(met)


@pytest.mark.nightly
def test_given_a_hundred_runs_that_go_one_at_a_time_then_their_world_comes_to_rest() -> None:
    """Seed 43001018 with these traps: it was told to be at rest five minutes after it had healed, amid the runs that it owed."""
    outcome = simulate(43001018, swarm=WITH_RAREST.swarm(43001018))
    assert not outcome.violations, outcome.story()
