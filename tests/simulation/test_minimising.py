"""A planted bug, found in a hostile world, is followed down to the least world that still shows it."""

from __future__ import annotations

from tidegate_testkit.simulation.drawing import swarm_of
from tidegate_testkit.simulation.faults.node import calm_nodes
from tidegate_testkit.simulation.faults.store import calm_store
from tidegate_testkit.simulation.minimising import BUSY_MS_MIN, minimise
from tidegate_testkit.simulation.mutants import MUTANTS


def test_given_a_bug_that_needs_no_fault_then_a_short_and_calm_world_is_left() -> None:
    mutant = MUTANTS["no program"]
    with mutant.planted():
        least = minimise(1, swarm_of(1))
    assert least.invariant == mutant.breaks
    assert (least.swarm.store, least.swarm.node, least.swarm.busy_ms) == (calm_store(), calm_nodes(), BUSY_MS_MIN)
    assert least.outcome.tail
