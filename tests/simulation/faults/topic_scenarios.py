"""Traps about topics: requests is deleted and made again while all nodes run, and a user's transaction stays open for long."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tests.simulation.faults.node_faults import Trouble, strikes
from tests.simulation.runner.swarm import Burst, Swarm

FIRST_MS: Final = 12_000
LAST_MS: Final = 20_000
"""Before the faults end: the map has followed by then, and there are messages after it."""
FOLLOWS_MS: Final = (0, 1_000, 1_000, 6_000, 15_000)
"""How long after that somebody writes the next map: at once, when something was read (1 s), or when somebody asks."""
MOMENTS: Final = ("cursor", "raise", "acquire")
SENT: Final = 40
POSITION: Final = "cursor"
OPEN_MS: Final = 40_000
STOPPING: Final = ("control", "controls", "end_pending", "cancel_run")


def requests_topic_made_anew(swarm: Swarm, chance: Random) -> Swarm:
    """Much is sent just before, and after it, under the old map and the new one.

    For some seconds before it no position moves in most of the worlds, and some holders fall meanwhile: of what they have read the rows
    are there, and the records are gone. Others fall amid the change of the map.
    """
    at, follows = chance.randint(FIRST_MS, swarm.busy_ms - LAST_MS), chance.choice(FOLLOWS_MS)
    falls = [
        Trouble(at + chance.randint(-1_500, 500), "crash", chance.randint(200, 6_000))
        for _ in range(chance.randint(1, 3))
    ]
    falls.append(Trouble(at, "crash", chance.randint(200, 6_000), once_applied=chance.choice(MOMENTS)))
    store = swarm.store
    if chance.random() < 0.7:
        out = (at - chance.randint(500, 4_000), at + chance.randint(0, 1_500))
        store = replace(store, aimed=tuple(sorted({*store.aimed, POSITION})), aimed_outs=(*store.aimed_outs, out))
    sent = Burst(SENT, (at - 3_000, at + follows + 4_000), (at - 2_000, at + 40_000))
    return replace(
        swarm,
        topics=replace(swarm.topics, requests_recreated=(at, follows)),
        store=store,
        node=replace(swarm.node, trouble=(*swarm.node.trouble, *falls)),
        bursts=(*swarm.bursts, sent),
    )


def open_transactions(swarm: Swarm, chance: Random) -> Swarm:
    """No node reads a request for 40 s, so that owners have the time that they may take for stops that are handed over. Few fall.

    In half of the worlds no poke arrives: an owner finds the rows when it reads its inbox, every 10 s.
    """
    begin = chance.randint(5_000, 10_000)
    opened = ("requests",) if chance.random() < 0.3 else ("requests", "events")
    if chance.random() < 0.5:
        swarm = replace(swarm, broker=replace(swarm.broker, lost_pokes=1.0))
    return replace(
        swarm,
        topics=replace(swarm.topics, open_transactions=tuple((topic, (begin, begin + OPEN_MS)) for topic in opened)),
        node=replace(swarm.node, trouble=(*swarm.node.trouble, *strikes(chance, STOPPING, 2))),
    )
