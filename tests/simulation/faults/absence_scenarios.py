"""Traps in which nobody is there for long: what falls due meanwhile is caught up with (SEMANTICS 3), once, and by whoever is next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tests.simulation.faults.node_faults import Trouble
from tests.simulation.runner.swarm import Swarm
from tests.simulation.users.tick_schedules import TAKEN

MINUTE_MS = 60_000
AFTERWARDS_MS = 45_000
"""For users, faults and the rest of what is to be caught up with."""
TICKS_TAKEN = 8
LATENCY_MS = 20
"""Of the store, where there are ticks of hours to take."""
WALKED = "firing.catch_up:WALKED_PER_TRANSACTION"
WALKED_SLOWLY = 40
"""Instants that a transaction walks at least where the store is slower than that."""


def black_out(swarm: Swarm, chance: Random) -> Swarm:
    """All nodes end, and none comes back for one to three hours; who comes back falls again in the middle of it.

    Programs that were on their way to a platform that is not reached are still to be submitted then. Of the ticks of hours each decision
    takes eight, in a store that is not slow: they would last longer than the world has time to come to rest. Likewise the instants of
    hours, of four schedules in one shard, where a store of 200 ms takes two or five at a time.
    """
    begin = chance.randint(15_000, 40_000)
    end = begin + chance.randint(65, 180) * MINUTE_MS
    again = tuple(
        Trouble(end, "crash", chance.randint(200, 9_000), once_applied=name)
        for name in chance.sample(("acquire", "fire", "fire", "admit", "checkpoint"), 2)
    )
    node = replace(swarm.node, black_outs=((begin, end),), trouble=(*swarm.node.trouble, *again))
    launcher = replace(swarm.launcher, refused=chance.choice((swarm.launcher.refused, 0.7)))
    least = dict.fromkeys(TAKEN, TICKS_TAKEN)
    if swarm.store.latency_ms > LATENCY_MS:
        least[WALKED] = WALKED_SLOWLY
    knobs = tuple((name, max(value, least.get(name, value))) for name, value in swarm.knobs)
    has_ticks = not TAKEN.isdisjoint(dict(knobs))
    store = replace(swarm.store, latency_ms=min(swarm.store.latency_ms, LATENCY_MS)) if has_ticks else swarm.store
    busy_ms = max(swarm.busy_ms, end + AFTERWARDS_MS)
    return replace(swarm, node=node, store=store, launcher=launcher, knobs=knobs, busy_ms=busy_ms)


def silence(swarm: Swarm, chance: Random, lengths_s: Sequence[int] = (50, 75, 100)) -> Swarm:
    """The store answers nobody for a little more than the grace, or for a little less, while all nodes stay where they are.

    One of them falls in the moment in which the store is back. The facts of it meet all that may befall a write: elsewhere
    there are none.
    """
    begin = chance.randint(15_000, 40_000)
    end = begin + chance.choice(lengths_s) * 1_000
    fall = Trouble(end + chance.randint(-1_000, 1_500), "crash", chance.randint(200, 9_000))
    noted = Trouble(
        end, "crash", chance.randint(200, 9_000), once_applied=chance.choice(("outage", "fire", "checkpoint"))
    )
    # An answer that is some 10 s late would say in the middle of the silence that the store is there.
    store = replace(
        swarm.store,
        brown_outs=(*swarm.store.brown_outs, (begin, end)),
        slow_loads=False,
        aimed=tuple(sorted({*swarm.store.aimed, "outage"})),
    )
    node = replace(swarm.node, trouble=(*swarm.node.trouble, fall, noted))
    launcher = swarm.launcher
    if launcher.hosts:
        # A program that has passed the gate unheard, and gives up, is lost by design.
        launcher = replace(launcher, gate_wait_ms=launcher.gate_wait_ms + end - begin)
    busy_ms = max(swarm.busy_ms, end + AFTERWARDS_MS)
    return replace(swarm, store=store, launcher=launcher, node=node, busy_ms=busy_ms)
