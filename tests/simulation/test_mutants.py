"""Planted bugs that the simulation must find: what a check cannot find, it does not prove.

Each takes one protection away and must be found by a violation of the invariant that it breaks. `I5` is found by the monitor
of the store's writes, which trusts no condition and reads from each transaction's token who sent it under which tenure.
"""

from __future__ import annotations

import pytest

from tidegate_testkit.simulation.mutants import MUTANTS


@pytest.mark.parametrize("name", MUTANTS)
def test_given_a_planted_bug_then_the_simulation_finds_what_it_breaks(name: str) -> None:
    mutant = MUTANTS[name]
    others: list[str] = []
    for seed in range(mutant.within):
        outcome = mutant.simulate(seed)
        if mutant.proofs(outcome):
            return
        others += [f"seed {seed}: {violation}" for violation in outcome.violations]
    pytest.fail(
        f"none of {mutant.within} seeds found {mutant.breaks}, although {mutant.why}; what they found: {others[:5]}"
    )
