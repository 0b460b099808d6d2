"""Schedules whose composites have a leaf of time, in the worlds that are about them: their ticks meet data, or fire alone."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from tidegate_core.model.durations import parse_duration
from tidegate_core.model.instants import format_instant, parse_instant
from tidegate_testkit.simulation.definitions import Definition, needed_of
from tidegate_testkit.simulation.timeline import START

if TYPE_CHECKING:
    from tidegate_testkit.simulation.swarm import Swarm

TRAP: Final = "ticks"
TICKS_ON_MS: Final = 90_000
"""Ticks go on so long after the busy time: a schedule is refused that has none to come, and late requests are applied by then."""
OF_TIME: Final = "every"


def ticking(swarm: Swarm, chance: Random) -> list[Definition]:
    """Returns the schedules: none in worlds without the trap."""
    if TRAP not in swarm.traps:
        return []
    end = format_instant(START + swarm.busy_ms + TICKS_ON_MS)

    def leaf(*seconds: int) -> dict[str, Any]:
        return {"type": OF_TIME, "period": f"{chance.choice(seconds)}s", "end": end}

    def data(dataset: str, count: int) -> dict[str, Any]:
        return {"type": "data_partitions", "dataset": dataset, "count": count}

    beat = {"type": "any_of", "triggers": [leaf(4, 5, 7), data("b", 3)]}
    meet = {"type": "all_of", "triggers": [leaf(3, 6), data("a", 1)], "timeout": chance.choice(("4s", "9s"))}
    return [
        Definition("beat", beat, most=chance.choice((1, None))),
        Definition("meet", meet, most=chance.choice((1, None))),
    ]


def leaves_of_time(definition: Definition) -> dict[int, dict[str, Any]]:
    """Returns the leaves of time by their places."""
    leaves, _ = needed_of(definition.trigger)
    return {} if definition.is_timed else {at: leaf for at, leaf in enumerate(leaves) if leaf["type"] == OF_TIME}


def names(leaf: dict[str, Any], instant: int) -> bool:
    """Whether a leaf ticks at an instant."""
    return instant % parse_duration(leaf["period"]) == 0 and instant < parse_instant(leaf["end"])


def ticks_between(leaf: dict[str, Any], begin: int, end: int) -> range:
    """Returns the ticks `begin <= instant < end`."""
    period = parse_duration(leaf["period"])
    return range(-(-begin // period) * period, min(end, parse_instant(leaf["end"])), period)
