"""The world that the lies are about; a module whose lies need another one has a `world` of its own."""

from __future__ import annotations

import pytest
from tests.unit.tidegate_testkit.simulation.checks.lying import SEED

from tidegate_testkit.simulation.checks.case import Case
from tidegate_testkit.simulation.running import run
from tidegate_testkit.simulation.world import World, build


@pytest.fixture(scope="module")
def world() -> World:
    """A calm world at rest: in it everything is as it should be."""
    return run(build(SEED, faults=False))


@pytest.fixture
def case(world: World) -> Case:
    return Case(world)
