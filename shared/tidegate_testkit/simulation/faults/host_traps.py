"""Traps about launchers that see one host only, as the local one does."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tidegate_testkit.simulation.faults.node import Trouble
from tidegate_testkit.simulation.swarm import Swarm

SLOW_START_MS: Final = 8_000
"""Longest start of a program: the copy of the next owner may be there first."""
LONG_BODY_MS: Final = 6_000
"""A program still runs when its other copy comes to the gate."""
LONG_WAIT_MS: Final = 120_000
"""A program waits so long for the gate: longer than that is away."""


def copies(swarm: Swarm, chance: Random) -> Swarm:
    """Each node is on a host of its own, and its launcher hardly comes to say that it has started a program, or will: the next
    owner's starts it as well. Which copy passes the gate is open, and the other one ends in any way.
    """
    launcher = replace(
        swarm.launcher,
        hosts=True,
        unique_names=True,
        lost_answer=0.7,
        slow_start_ms=SLOW_START_MS,
        body_ms=LONG_BODY_MS,
        early_death=0.7,
        silent_death=0.0,
        gate_wait_ms=LONG_WAIT_MS,
        restarts=0.0,
        names_kept_ms=None,
    )
    ends = tuple(
        Trouble(at, chance.choice(("crash", "drain", "drain")), chance.randint(200, 3_000))
        for at in range(6_000, swarm.busy_ms - 4_000, 4_000)
    )
    return replace(swarm, launcher=launcher, node=replace(swarm.node, trouble=(*swarm.node.trouble, *ends)))
