"""Schedules whose composites have a leaf of time, in the worlds that are about them: their ticks meet data, fire alone, or open
an instance each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.users.schedule_definitions import Definition, needed_of
from tests.simulation.world.timeline import START
from tidegate_core.language.values.durations import parse_duration
from tidegate_core.language.values.instants import format_instant, parse_instant

if TYPE_CHECKING:
    from tests.simulation.runner.swarm import Swarm

TRAP: Final = "ticks"
TICKS_ON_MS: Final = 90_000
"""Ticks go on so long after the busy time: a schedule is refused that has none to come, and late requests are applied by then."""
TICKS_ON_LONG_MS: Final = 300_000
"""The same behind hours without a node: a request waits in its shard until the ticks of all of them are taken."""
OF_TIME: Final = "every"
OPEN_MAX: Final = "evidence.tick_instances:OPEN_MAX"
"""The knob of how many instances may be open."""
TAKEN: Final = frozenset(
    {"evidence.tick_cursor:GROUPS_OF_TICKS_MAX", "language.triggers.composite.ticks:TICKS_TAKEN_MAX"}
)
"""The knobs of how many ticks a decision takes."""
KNOBS: Final[Mapping[str, tuple[int, ...]]] = {
    OPEN_MAX: (2, 5),
    "evidence.tick_cursor:GROUPS_OF_TICKS_MAX": (1, 2, 8),
    "language.triggers.composite.ticks:TICKS_TAKEN_MAX": (1, 2, 500),
}
"""What one decision takes, and how much may be open: few enough that an outage of seconds leaves more. Each open instance is a range of
the shard writer's view, whose knob lets it keep nine.
"""


def ticking(swarm: Swarm, chance: Random) -> list[Definition]:
    """Returns the schedules: none in worlds without the trap."""
    if TRAP not in swarm.traps:
        return []
    end = format_instant(START + swarm.busy_ms + (TICKS_ON_LONG_MS if swarm.node.black_outs else TICKS_ON_MS))

    def leaf(*seconds: int) -> dict[str, Any]:
        return {"type": OF_TIME, "period": f"{chance.choice(seconds)}s", "end": end}

    def data(dataset: str, count: int) -> dict[str, Any]:
        return {"type": "data_partitions", "dataset": dataset, "count": count}

    beat = {"type": "any_of", "triggers": [leaf(4, 5, 7), data("b", 3)]}
    meet = {"type": "all_of", "triggers": [leaf(3, 6), data("a", 1)], "timeout": chance.choice(("4s", "9s"))}
    drawn = [
        Definition("beat", beat, most=chance.choice((1, None))),
        Definition("meet", meet, most=chance.choice((1, None))),
    ]
    others = chance.choice(([data("a", 1)], [data("a", 2)], [data("a", 1), data("b", 1)]))
    each = {
        "type": "all_of",
        "triggers": [{**leaf(3, 6), "driver": "time"}, *others],
        "timeout": chance.choice(("4s", "9s", "15s")),
        "on_timeout": chance.choice(("abort", "abort", "partial", "wait")),
    }
    late = {"type": "delay", "after": "1s", "on_unmet": "wait"}  # What an instance has taken waits, and takes no more.
    return [*drawn, Definition("each", each, most=chance.choice((1, None)), constraints=(late,))]


def leaves_of_time(definition: Definition) -> dict[int, dict[str, Any]]:
    """Returns the leaves of time by their places."""
    leaves, _ = needed_of(definition.trigger)
    return {} if definition.is_timed else {at: leaf for at, leaf in enumerate(leaves) if leaf["type"] == OF_TIME}


def opens_instances(definition: Definition) -> bool:
    """Whether each tick opens an instance of its own."""
    return any(leaf.get("driver") == "time" for leaf in leaves_of_time(definition).values())


def goes_at_each_tick(definition: Definition) -> bool:
    """Whether each tick comes to a job, whatever it meets: its instance goes with what it has once its time is over."""
    return opens_instances(definition) and definition.trigger.get("on_timeout") == "partial"


def with_period(definition: Definition, period: str) -> Definition:
    """Returns the schedule with another period of its leaves of time."""
    leaves, _ = needed_of(definition.trigger)
    triggers = [{**leaf, "period": period} if leaf["type"] == OF_TIME else leaf for leaf in leaves]
    return replace(definition, trigger={**definition.trigger, "triggers": triggers})


def names(leaf: dict[str, Any], instant: int) -> bool:
    """Whether a leaf ticks at an instant."""
    return instant % parse_duration(leaf["period"]) == 0 and instant < parse_instant(leaf["end"])


def ticks_between(leaf: dict[str, Any], begin: int, end: int) -> range:
    """Returns the ticks `begin <= instant < end`."""
    period = parse_duration(leaf["period"])
    return range(-(-begin // period) * period, min(end, parse_instant(leaf["end"])), period)
