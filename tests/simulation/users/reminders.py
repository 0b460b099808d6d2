"""Schedules that ask for a job at the latest so long after the last one, with what is there (`at_least_every`, SEMANTICS 5.6).

Production takes nothing below a minute, which is as long as a world lasts: that limit is turned in all of them (`knobs.py`).
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.users.schedule_definitions import Definition

if TYPE_CHECKING:
    from tests.simulation.runner.swarm import Swarm

REMINDERS: Final = "rare_reminders"
"""The trap whose worlds have both."""

SHARE: Final = 0.4
"""Of the worlds, for each of the two schedules."""
LINGER_MS: Final = 35_000
"""How long such a schedule is left alone once all faults have ended: long enough for each to be reminded once its nodes have been renewed."""


def draw_reminded(chance: Random, swarm: Swarm) -> list[Definition]:
    """Draws those of a world: one counts what is not enough in most of its spans, the other what hardly ever comes."""
    one = {"type": "data_partitions", "dataset": "a", "count": chance.randint(3, 6)}
    several = {"type": "any_of", "triggers": [_data("b", 3), _data("c", chance.randint(2, 3))]}
    drawn = [
        Definition("rather", _reminded(chance, one), most=chance.choice((1, None))),
        Definition("rather-any", _reminded(chance, several), most=chance.choice((1, 2, None))),
    ]
    share = 1 if REMINDERS in swarm.traps else SHARE
    return [each for each in drawn if chance.random() < share]


def _reminded(chance: Random, trigger: dict[str, Any]) -> dict[str, Any]:
    every = {**trigger, "at_least_every": f"{chance.randint(5, 12)}s"}
    return {**every, "allow_empty": True} if chance.random() < 0.5 else every


def _data(dataset: str, count: int) -> dict[str, Any]:
    return {"type": "data_partitions", "dataset": dataset, "count": count}
