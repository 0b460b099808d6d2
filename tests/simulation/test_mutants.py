"""Planted bugs that the simulation must find: what a check cannot find, it does not prove.

Each takes one protection away and must be found by a violation of the invariant that it breaks: by a seed of random worlds,
or by the scenario that is made for it. `I5` is found by the monitor of the store's writes, which trusts no condition and reads
from each transaction's token who sent it under which tenure. `make mutants` prints what found each.
"""

from __future__ import annotations

import pytest

from tests.simulation.mutants import LISTS, MUTANTS
from tests.simulation.mutants.hunt import hunt
from tests.simulation.mutants.mutant import Mutant
from tests.simulation.mutants.sketch.protocol_sketch import NAMES_IN_THE_SKETCH

MUTANTS_MIN = 100


@pytest.mark.parametrize("name", MUTANTS)
def test_given_a_planted_bug_then_the_simulation_finds_what_it_breaks(name: str) -> None:
    hunted = hunt(MUTANTS[name])
    assert hunted.killed_by is not None, hunted.line


def test_given_the_lists_then_no_name_hides_another_mutant() -> None:
    assert len(MUTANTS) == sum(map(len, LISTS)) >= MUTANTS_MIN


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_given_a_mutant_then_it_is_hunted_by_seeds_or_by_a_scenario(mutant: Mutant) -> None:
    assert (mutant.within > 0) != (mutant.scenario is not None)


def test_given_the_bugs_of_the_protocols_sketch_then_each_is_planted_here() -> None:
    assert sorted(set(NAMES_IN_THE_SKETCH.values()) - MUTANTS.keys()) == []
