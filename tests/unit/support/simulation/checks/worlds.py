"""Worlds at rest that the lies are about. A process runs each of them once.

A lie changes a case, or patches the world with `monkeypatch`: all tests of a process share the world.
"""

from __future__ import annotations

from functools import cache

from tests.simulation.runner.runner import run
from tests.simulation.runner.world_drawing import swarm_of, trapped
from tests.simulation.world.world import World, build

SEED = 16
"""Its world has what most lies are about: a pair of events that launched, ticks, counts, dozens of pings, nothing suspended."""


@cache
def calm_world(seed: int = SEED, trap: str | None = None) -> World:
    """Returns a world without faults, and with this trap if one is named: in it everything is as it should be."""
    swarm = swarm_of(seed, faults=False)
    return run(build(seed, swarm=swarm if trap is None else trapped(swarm, seed, trap)))
