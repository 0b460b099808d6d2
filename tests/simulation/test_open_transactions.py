"""Worlds in which all works but for one open transaction: stops that the API hands over are answered while it is open, and respected (I7).

Directed, because a bound in seconds needs a world without other faults: an absent owner, or a store that is away, explains any wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.simulation.checks import violations
from tests.simulation.runner.runner import run
from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.users.requests import Asked
from tests.simulation.world.timeline import START
from tests.simulation.world.world import World, build

ANSWERED_MS = 8_000
"""From the request to its answer: 2 s until the API hands it over, and what its owner has under way."""
OPEN = (8_000, 48_000)
STOPS = frozenset(
    {
        *(f"schedule.{kind}" for kind in ("suspend", "delete")),
        *(f"control.{kind}" for kind in ("suspend", "resume")),
        "run.cancel",
        "job.cancel",
    }
)
SEEDS = (2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (3, 4, 5)))


def stops_amid(world: World) -> Iterator[Asked]:
    """Yields stops that were sent while the transaction was open, and early enough to be answered before its end."""
    begin, end = START + OPEN[0], START + OPEN[1] - ANSWERED_MS
    for asked in world.requests.asked.values():
        if asked.document["type"] in STOPS and begin < asked.sent_at < end:
            yield asked


@pytest.mark.parametrize("seed", SEEDS)
def test_given_an_open_transaction_and_no_other_fault_then_each_stop_is_answered_within_its_bound(seed: int) -> None:
    """Each waited until the transaction was over."""
    calm = swarm_of(seed, faults=False)
    opened = replace(calm.topics, open_transactions=(("requests", OPEN), ("events", OPEN)))
    world = run(build(seed, swarm=replace(calm, topics=opened)))
    stops = list(stops_amid(world))
    assert len(stops) >= 5, "the world has too few to tell"
    late = [
        f"{each.id} {each.document['type']}"
        for each in stops
        if each.receipt is None or each.receipt.at > each.sent_at + ANSWERED_MS
    ]
    assert late == [], f"I7: stops waited for the transaction: {late}"
    assert violations(world) == []
