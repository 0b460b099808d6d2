"""Traps that hunt transactions which even a world that aims at rare ones hardly meets.

Nearly each send of them meets a fault, and nodes fall or freeze at the moment at which one takes effect. Coverage asks for each
kind of fault at each transaction: chance alone spreads its faults over what is sent thousands of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from tidegate_testkit.simulation.faults.absence_traps import silence
from tidegate_testkit.simulation.faults.draws import period
from tidegate_testkit.simulation.faults.node import PAUSES_MS, Trouble
from tidegate_testkit.simulation.swarm import Burst, Swarm
from tidegate_testkit.simulation.transaction_names import HARDLY, HARDLY_OF_CONTROLS, OWNERS, RARE

HUNTED: Final = 3
"""Transactions that one world hunts."""
HUNTED_OF_CONTROLS: Final = 2
"""Less of them: a suspension whose every step is held up begins and never ends before the faults do."""
FALLS: Final = 5
"""Nodes that fall or freeze beyond those of the world."""
OUT_MS: Final = (3_000, 12_000)
COMMON: Final = tuple(name for name in OWNERS if name not in RARE)
SELDOM: Final = ("void", "expire")
"""Of those that are hardly met: what most worlds do not send at all."""
SILENCES_S: Final = (75, 100)
"""Beyond the grace, each of them."""
SPREAD: Final = 28
"""Messages that reach most shards of a world: a suspension has something to hold, and to let go."""


def rare_moments(swarm: Swarm, chance: Random) -> Swarm:
    """Any transactions that are hardly met; nodes fall at those, and at the moments of what is common as well."""
    return _hunting(swarm, chance, HUNTED, HARDLY, (*COMMON, *HARDLY, *HARDLY, *SELDOM, *SELDOM))


def rare_controls(swarm: Swarm, chance: Random) -> Swarm:
    """The steps of wide controls, which this world has in any case."""
    due = Burst(SPREAD, (2_000, 40_000), (6_000, 60_000))
    with_messages = replace(swarm, bursts=(*swarm.bursts, due))
    return _hunting(
        with_messages, chance, HUNTED_OF_CONTROLS, HARDLY_OF_CONTROLS, (*HARDLY_OF_CONTROLS, "controls_done")
    )


def rare_outages(swarm: Swarm, chance: Random) -> Swarm:
    """The facts of a silence: owners that stayed where they are write them, each once, and in no other world does anybody."""
    silent = silence(swarm, chance, SILENCES_S)
    _begin, end = silent.store.brown_outs[-1]
    store = replace(
        silent.store,
        hunted=(*silent.store.hunted, "outage"),
        aimed_outs=(*silent.store.aimed_outs, (end, end + chance.randint(500, 6_000))),
    )
    falls = (fallen_at("outage", end, chance) for _ in range(2))
    return replace(silent, store=store, node=replace(silent.node, trouble=(*silent.node.trouble, *falls)))


def fallen_at(name: str, since: int, chance: Random) -> Trouble:
    """Returns the fall, or the freeze, of whoever next sends a transaction of this name that takes effect."""
    if chance.random() < 0.5:
        return Trouble(since, "crash", chance.randint(200, 9_000), once_applied=name)
    return Trouble(since, "pause", chance.choice(PAUSES_MS), once_applied=name)


def _hunting(swarm: Swarm, chance: Random, number: int, names: Sequence[str], moments: Sequence[str]) -> Swarm:
    hunted = tuple(sorted(chance.sample(names, number)))
    store = replace(
        swarm.store,
        aimed=tuple(sorted({*swarm.store.aimed, *hunted})),
        hunted=(*swarm.store.hunted, *hunted),
        aimed_outs=(*swarm.store.aimed_outs, *(period(chance, swarm.busy_ms, *OUT_MS) for _ in range(2))),
    )
    falls = (fallen_at(chance.choice(moments), chance.randint(2_000, swarm.busy_ms // 2), chance) for _ in range(FALLS))
    node = replace(swarm.node, trouble=(*swarm.node.trouble, *falls))
    return replace(swarm, store=store, node=node)
