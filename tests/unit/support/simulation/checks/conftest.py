"""The world that the lies are about; a module whose lies need another one has a `world` of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.simulation.checks.case import Case
from tests.simulation.world.world import World
from tests.unit.support.simulation.checks.worlds import calm_world

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Gives the lies to one worker, because each worker would run their worlds again."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.xdist_group("lies"))


@pytest.fixture(scope="module")
def world() -> World:
    """A calm world at rest: in it everything is as it should be."""
    return calm_world()


@pytest.fixture
def case(world: World) -> Case:
    return Case(world)
