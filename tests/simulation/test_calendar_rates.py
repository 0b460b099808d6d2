"""Rates by the hour of a calendar in worlds: no hour has more admissions than one allows, on either side of its end (SEMANTICS 7.5).

Directed, because no world draws them: the schedules of hostile and of calm worlds share such a rate here, and an hour ends in the middle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Final
from unittest import mock

import pytest

from tests.simulation.runner.outcome import judged
from tests.simulation.runner.runner import run
from tests.simulation.runner.swarm import Swarm
from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.users.schedule_definitions import Definition
from tests.simulation.users.shared_limits import OFTEN, TIME_OUT
from tests.simulation.world import world as world_module
from tests.simulation.world.timeline import START
from tests.simulation.world.world import World, build
from tests.support.builders import MINUTE
from tidegate_core.language.time.calendar_periods import period_end
from tidegate_core.language.time.zones import zone_named
from tidegate_core.rows.store_operations import Table

SEEDS = (2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (3, 4, 5)))
"""In their calm worlds something is admitted on either side of the hour's end."""
HOUR_S = 3_600
MOST = 2
TABLES: Final[tuple[Table, ...]] = ("main", "history")


def zone_of_an_hour_that_ends_soon() -> str:
    """Returns an offset from UTC under which an hour ends with the first whole minute of a world, 40 s after its begin."""
    minutes = -(START // MINUTE + 1) % 60
    return f"+00:{minutes:02d}"


ZONE = zone_of_an_hour_that_ends_soon()
RATE = {
    "type": "rate",
    "max": MOST,
    "per": "1h",
    "window": "calendar",
    "zone": ZONE,
    "scope": "group",
    "group": "hourly",
}


def by_the_hour(_chance: Random, definitions: list[Definition], _swarm: Swarm) -> list[Definition]:
    return [
        replace(each, constraints=(*each.constraints, RATE), pending_timeout=TIME_OUT, late="abort")
        if each.name.startswith(OFTEN) and not each.sends_messages
        else each
        for each in definitions
    ]


def the_world(seed: int, *, faults: bool) -> World:
    with mock.patch.object(world_module, "paced", by_the_hour):
        world = run(build(seed, swarm=swarm_of(seed, faults=faults)))
    outcome = judged(world)
    assert not outcome.violations, outcome.story()
    return world


def admitted_by_hour(world: World) -> Counter[int]:
    """Counts runs whose programs have started, of those that share the rate, by the end of the hour in which they were admitted."""
    found: Counter[int] = Counter()
    for item in (each for table in TABLES for each in world.cluster.store.memory.stored(table)):
        limits = item.get("limits")
        if "started_at" in item and isinstance(limits, list) and any("|RATE#" in str(text) for text in limits):
            found[period_end(zone_named(ZONE), int(str(item["admitted_at"])) // 1000, HOUR_S)] += 1
    return found


@pytest.mark.parametrize("faults", [False, True], ids=["calm", "hostile"])
@pytest.mark.parametrize("seed", SEEDS)
def test_given_a_rate_by_the_hour_then_no_hour_of_its_calendar_has_more(seed: int, faults: bool) -> None:
    by_hour = admitted_by_hour(the_world(seed, faults=faults))
    assert all(count <= MOST for count in by_hour.values()), by_hour
    assert len(by_hour) <= 2
    if not faults:
        assert len(by_hour) == 2, "nothing is shown about the end of the hour"
