"""The world that the lies are about; a module whose lies need another one has a `world` of its own."""

from __future__ import annotations

import pytest

from tests.simulation.checks.case import Case
from tests.simulation.world.world import World
from tests.unit.support.simulation.checks.worlds import calm_world


@pytest.fixture(scope="module")
def world() -> World:
    """A calm world at rest: in it everything is as it should be."""
    return calm_world()


@pytest.fixture
def case(world: World) -> Case:
    return Case(world)
