"""Traps that hunt transactions which even a world that aims at rare ones hardly meets.

Nearly each send of them meets a fault, and nodes fall or freeze at the moment at which one takes effect. Coverage asks for each
kind of fault at each transaction: chance alone spreads its faults over what is sent thousands of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from tests.simulation.faults.absence_scenarios import silence
from tests.simulation.faults.node_faults import PAUSES_MS, Trouble
from tests.simulation.faults.random_draws import period
from tests.simulation.runner.swarm import Burst, Swarm
from tests.simulation.world.transaction_names import (
    HARDLY,
    HARDLY_OF_RESUMES,
    HARDLY_OF_SUSPENDS,
    OF_REFUSALS,
    OF_SOURCES,
    OWNERS,
    RARE,
)

HUNTED: Final = 5
"""Transactions that one world hunts."""
HUNTED_OF_SUSPENDS: Final = 3
LAST_OF_SUSPENDS: Final = ("settle_control",)
"""What stores the answer to a wide control, once all shards are through with it."""
FALLS: Final = 7
"""Nodes that fall or freeze beyond those of the world."""
OUT_MS: Final = (3_000, 12_000)
OUTS: Final = 4
"""Spans in which admissions get no answer while programs end and others begin."""
COMMON: Final = tuple(name for name in OWNERS if name not in RARE)
SELDOM: Final = ("look", "submitted", "admit", "distribute", "distribute")
"""Of the common ones those that nodes were met at least often by falls."""
DISTRIBUTING: Final = 0.2
"""Share of the worlds of `rare_moments` whose faults aim at what sends an event to its shards as well: outages hardly met that."""
CROWD: Final = 6
"""Schedules that take each other's slots of one limit."""
SPREAD: Final = 28
"""Messages that reach most shards of a world: a suspension has something to hold, and to let go."""
SILENCES_S: Final = (75, 100)
"""Beyond the grace, each of them."""
OUTAGE_FALLS: Final = 4
AS_IT_BEGINS_MS: Final = 25_000
"""What befalls a node, or the requests topic, for so long before a silence still moves shards in it."""
REFUSALS_MS: Final = ((6_000, 20_000), (26_000, 46_000))
"""When one sink refuses all: once early, and again when those of the first time have been tried."""


def rare_moments(swarm: Swarm, chance: Random) -> Swarm:
    """Any transactions that are hardly met; nodes fall at those, and at the moments of what is common as well."""
    hunted = chance.sample(HARDLY, HUNTED)
    if chance.random() < DISTRIBUTING:
        swarm = replace(swarm, store=replace(swarm.store, aimed=(*swarm.store.aimed, "distribute")))
    return _falling(_hunting(swarm, chance, hunted), chance, (*COMMON, *SELDOM, *HARDLY, *HARDLY, *OF_SOURCES), FALLS)


def rare_suspends(swarm: Swarm, chance: Random) -> Swarm:
    """The steps that begin a wide suspension; each world has such users then.

    In a third of them the last step alone: where those before it are hunted it is hardly reached while there are faults.
    """
    hunted: Sequence[str] = chance.sample(HARDLY_OF_SUSPENDS, HUNTED_OF_SUSPENDS)
    falls: Sequence[str] = (*HARDLY_OF_SUSPENDS, "controls_done")
    if chance.random() < 0.35:
        hunted = falls = LAST_OF_SUSPENDS
    return _falling(_hunting(_with_messages(swarm), chance, hunted), chance, falls, FALLS)


def rare_resumes(swarm: Swarm, chance: Random) -> Swarm:
    """The steps that end one, and nothing else: whose beginning is held up ends when there are no faults any more."""
    only = replace(_with_messages(swarm), store=replace(swarm.store, aimed=(), hunted=()))
    return _falling(_hunting(only, chance, HARDLY_OF_RESUMES), chance, HARDLY_OF_RESUMES, FALLS - 1)


def rare_voids(swarm: Swarm, chance: Random) -> Swarm:
    """Admissions get no answer, and find that others have their slot: whoever sent one makes it impossible, which is a void.

    In half of the worlds that is hunted as well.
    """
    hunted = ("admit", "void") if chance.random() < 0.5 else ("admit",)
    crowded = replace(swarm, crowd=max(swarm.crowd, CROWD))
    return _falling(_hunting(crowded, chance, hunted, OUTS), chance, ("void",), FALLS - 1)


def rare_expiries(swarm: Swarm, chance: Random) -> Swarm:
    """Evidence whose time is over; each composite of such a world gives up soon (`hurry.py`)."""
    return _falling(_hunting(swarm, chance, ("expire",)), chance, ("expire",), FALLS - 1)


def rare_reminders(swarm: Swarm, chance: Random) -> Swarm:
    """What `at_least_every` asks for; each such world has both schedules that ask for it (`reminders.py`)."""
    return _falling(_hunting(swarm, chance, ("at_least_every",), OUTS), chance, ("at_least_every",), FALLS)


def rare_outages(swarm: Swarm, chance: Random) -> Swarm:
    """The facts of a silence: owners that stayed where they are write them, each once, and in no other world does anybody.

    So that they stay, what would move shards in the silence, or shortly before it, comes behind it, or not at all where the
    world is over by then: whoever acquires a shard writes its fact in that transaction.
    """
    silent = silence(swarm, chance, SILENCES_S)
    begin, end = silent.store.brown_outs[-1]

    def put_off(at: int) -> int:
        still_from = begin - AS_IT_BEGINS_MS
        return at + end - still_from if still_from <= at < end else at

    of_the_world = len(swarm.node.trouble)
    later = tuple(replace(each, at=put_off(each.at)) for each in silent.node.trouble[:of_the_world])
    grown = swarm.topics.requests_grown
    topics = replace(swarm.topics, requests_grown=grown and (put_off(grown[0]), grown[1]))
    store = replace(
        silent.store,
        hunted=(*silent.store.hunted, "outage"),
        aimed_outs=(*silent.store.aimed_outs, (end, end + chance.choice((1, 1_500, 6_000)))),
    )
    falls = tuple(fallen_at("outage", end + chance.randint(0, 3_000), chance) for _ in range(OUTAGE_FALLS))
    trouble = (*later, *silent.node.trouble[of_the_world:], *falls)
    return replace(silent, store=store, node=replace(silent.node, trouble=trouble), topics=topics)


def rare_refusals(swarm: Swarm, chance: Random) -> Swarm:
    """A sink refuses what schedules send, and what gives those fires rows hardly arrives: owners change while it is on its way."""
    broker = replace(swarm.broker, refusals=(*swarm.broker.refusals, *REFUSALS_MS))
    return _falling(_hunting(replace(swarm, broker=broker), chance, OF_REFUSALS), chance, OF_REFUSALS, FALLS)


def fallen_at(name: str, since: int, chance: Random) -> Trouble:
    """Returns the fall, or the freeze, of whoever next sends a transaction of this name that takes effect."""
    if chance.random() < 0.5:
        return Trouble(since, "crash", chance.randint(200, 9_000), once_applied=name)
    return Trouble(since, "pause", chance.choice(PAUSES_MS), once_applied=name)


def _hunting(swarm: Swarm, chance: Random, hunted: Sequence[str], outs: int = 2) -> Swarm:
    store = replace(
        swarm.store,
        aimed=tuple(sorted({*swarm.store.aimed, *hunted})),
        hunted=(*swarm.store.hunted, *sorted(hunted)),
        aimed_outs=(*swarm.store.aimed_outs, *(period(chance, swarm.busy_ms, *OUT_MS) for _ in range(outs))),
    )
    return replace(swarm, store=store)


def _falling(swarm: Swarm, chance: Random, names: Sequence[str], number: int) -> Swarm:
    since = (chance.randint(2_000, swarm.busy_ms // 2) for _ in range(number))
    falls = tuple(fallen_at(chance.choice(names), at, chance) for at in since)
    return replace(swarm, node=replace(swarm.node, trouble=(*swarm.node.trouble, *falls)))


def _with_messages(swarm: Swarm) -> Swarm:
    return replace(swarm, bursts=(*swarm.bursts, Burst(SPREAD, (2_000, 40_000), (6_000, 60_000))))
