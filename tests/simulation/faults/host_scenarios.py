"""Traps about launchers that see one host only, as the local one does."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tests.simulation.faults.node_faults import Trouble, strikes
from tests.simulation.faults.small_limits import Knob
from tests.simulation.runner.swarm import Swarm

SLOW_START_MS: Final = 8_000
"""Longest start of a program: the copy of the next owner may be there first."""
QUICK_START_MS: Final = 500
LONG_BODY_MS: Final = 6_000
"""A program still runs when its other copy comes to the gate."""
LONG_WAIT_MS: Final = 120_000
"""A program waits so long for the gate, and for as long again as the store is silent: longer than both are away. One that has passed it
unheard, and gives up, is lost by design.
"""
LOST_AFTER_MS: Final = (4_000, 9_000)
"""What nobody can ask for is lost after this, and not after ten minutes, when all faults have ended."""


def _with_hosts(swarm: Swarm, chance: Random) -> Swarm:
    """Returns a world in which each node is on a host of its own, and shards change hands every few seconds."""
    launcher = replace(
        swarm.launcher,
        hosts=True,
        unique_names=True,
        body_ms=LONG_BODY_MS,
        gate_wait_ms=LONG_WAIT_MS + sum(end - begin for begin, end in swarm.store.brown_outs),
        restarts=0.0,
        names_kept_ms=None,
    )
    ends = tuple(
        Trouble(at, chance.choice(("crash", "drain", "drain")), chance.randint(200, 3_000))
        for at in range(6_000, swarm.busy_ms - 4_000, 4_000)
    )
    return replace(swarm, launcher=launcher, node=replace(swarm.node, trouble=(*swarm.node.trouble, *ends)))


def copies(swarm: Swarm, chance: Random) -> Swarm:
    """Each node is on a host of its own, and its launcher hardly comes to say that it has started a program, or will: the next
    owner's starts it as well. Which copy passes the gate is open, and the other one ends in any way.
    """
    swarm = _with_hosts(swarm, chance)
    launcher = replace(
        swarm.launcher,
        lost_answer=0.7,
        slow_start_ms=SLOW_START_MS,
        early_death=0.7,
        silent_death=0.0,
    )
    return replace(swarm, launcher=launcher)


def lost_hosts(swarm: Swarm, chance: Random) -> Swarm:
    """Each node is on a host of its own, where programs die without a word, and shards move to owners who cannot see them: what is lost an
    operator releases (`operating.py`). Owners fall as they write down that it is lost, or released.
    """
    swarm = _with_hosts(swarm, chance)
    launcher = replace(
        swarm.launcher,
        lost_answer=min(swarm.launcher.lost_answer, 0.05),
        slow_start_ms=QUICK_START_MS,
        early_death=0.0,
        silent_death=0.5,
    )
    falls = strikes(chance, ("lost", "release_run", "release_run"), 4, kinds=("crash", "pause"))
    lost: Knob = ("runs.attempts:PROBE_GAP_MS", chance.choice(LOST_AFTER_MS))
    node = replace(swarm.node, trouble=(*swarm.node.trouble, *falls))
    return replace(swarm, launcher=launcher, node=node, knobs=(*swarm.knobs, lost))
