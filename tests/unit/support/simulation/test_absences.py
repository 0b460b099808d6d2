"""Worlds in which nobody is there for hours: what is made up for afterwards fits into the time that they have to come to rest."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.simulation.faults.node_faults import calm_nodes
from tests.simulation.runner.runner import rest_ms_max
from tests.simulation.runner.swarm import Swarm
from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.users.absence_schedules import prepared
from tests.simulation.users.schedule_definitions import Definition
from tests.simulation.users.tick_schedules import TRAP, leaves_of_time, ticking, ticks_between
from tests.simulation.world.timeline import START

HOURS_MS = 180 * 60_000
RUN_MS = 2_000
"""Twice what passes from one admission to the next where one runs at a time."""
SEEDS = range(40)


def _gone_for(length_ms: int) -> Swarm:
    node = replace(calm_nodes(), black_outs=((20_000, 20_000 + length_ms),))
    return replace(swarm_of(0, faults=False), traps=(TRAP,), node=node, busy_ms=length_ms + 65_000)


def _each(on_timeout: str, most: int | None, swarm: Swarm) -> Definition:
    """One whose ticks open an instance each, as some seed draws it."""
    drawn = (each for seed in SEEDS for each in ticking(swarm, Random(seed)) if each.name == "each")
    return next(each for each in drawn if (each.trigger["on_timeout"], each.most) == (on_timeout, most))


def test_given_hours_without_a_node_when_ticks_come_to_jobs_one_at_a_time_then_all_of_them_run() -> None:
    """Seed 20502165: of 2200 jobs 914 were left when the world was given up."""
    swarm = _gone_for(HOURS_MS)
    (each,) = prepared([_each("partial", 1, swarm)], swarm, Random(0))
    (leaf,) = leaves_of_time(each).values()
    missed = ticks_between(leaf, START + 20_000, START + 20_000 + HOURS_MS)
    assert 20 < len(missed) < rest_ms_max(swarm) // RUN_MS
    healed = START + swarm.busy_ms
    assert ticks_between(leaf, healed, healed + HOURS_MS), "who applies it again is refused"
