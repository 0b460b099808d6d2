"""Worlds in which nobody is there for long: what their schedules are like, and when nobody was there.

An hour of a schedule that fires every two seconds would cost as much as forty worlds. So those that make a job for each
instant fire rarely here, and the others keep their pace: thousands of instants become one occurrence.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.faults.random_draws import Period
from tests.simulation.users.tick_schedules import goes_at_each_tick, with_period
from tests.simulation.world.timeline import START
from tidegate_core.shard.outages.outage_time import CatchUp

if TYPE_CHECKING:
    from tests.simulation.runner.swarm import Swarm
    from tests.simulation.users.schedule_definitions import Definition

MODES: Final[tuple[CatchUp, ...]] = ("all", "last", "coalesce", "none")
INSTANTS_MADE: Final = 20
"""Of an absence, by a schedule that makes a job for each of them."""
BETWEEN_TICKS: Final = "60s"
"""In a long absence, where each tick comes to a job and one runs at a time (seed 20502165: 2100 of them, half an hour): not so rare
that none is left when the schedule is applied behind it.
"""
LONG_MS: Final = 150_000
"""Shorter absences need no rarer fires."""
SEEN_MS: Final = 10_000
"""How often a node says that it was seen, as production's does."""


def prepared(definitions: list[Definition], swarm: Swarm, chance: Random) -> list[Definition]:
    """Returns the schedules with what becomes of the instants that they miss."""
    if not absences(swarm):
        return definitions
    return [_prepared(each, max(end - begin for begin, end in absences(swarm)), chance) for each in definitions]


def _prepared(definition: Definition, length_ms: int, chance: Random) -> Definition:
    if definition.most == 1 and goes_at_each_tick(definition) and length_ms > LONG_MS:
        return with_period(definition, BETWEEN_TICKS)
    if definition.trigger["type"] not in {"every", "cron", "times"}:
        return definition
    mode = chance.choice(MODES)
    if mode == "all" and length_ms > LONG_MS:
        period = {"type": "every", "period": f"{length_ms // INSTANTS_MADE // 1_000}s"}
        return replace(definition, trigger=period)
    return replace(definition, catch_up=mode)


def absences(swarm: Swarm) -> tuple[Period, ...]:
    """Returns when no shard can have been served, milliseconds after the start."""
    from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS

    silences = tuple((begin, end) for begin, end in swarm.store.brown_outs if end - begin > OUTAGE_GRACE_MS)
    return (*swarm.node.black_outs, *silences)


def nobody_until(swarm: Swarm, now: int) -> int | None:
    """Returns when there are nodes again, or None while there are some."""
    return next((START + end for begin, end in swarm.node.black_outs if START + begin <= now < START + end), None)
