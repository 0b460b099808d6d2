"""A planted bug, found in a hostile world, is followed down to the least world that still shows it."""

from __future__ import annotations

import pytest

from tests.simulation.faults.node_faults import calm_nodes
from tests.simulation.faults.store_faults import calm_store
from tests.simulation.mutants import MUTANTS
from tests.simulation.runner.minimizer import BUSY_MS_MIN, minimise
from tests.simulation.runner.world_drawing import swarm_of


@pytest.mark.nightly
def test_given_a_bug_that_needs_no_fault_then_a_short_and_calm_world_is_left() -> None:
    mutant = MUTANTS["no program"]
    with mutant.planted():
        least = minimise(1, swarm_of(1))
    assert least.invariant == mutant.breaks
    assert (least.swarm.store, least.swarm.node, least.swarm.busy_ms) == (calm_store(), calm_nodes(), BUSY_MS_MIN)
    assert least.outcome.tail
