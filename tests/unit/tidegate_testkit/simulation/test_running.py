from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate_testkit.simulation.drawing import swarm_of
from tidegate_testkit.simulation.faults.node import calm_nodes
from tidegate_testkit.simulation.running import (
    CATCH_UP_MS_MAX,
    REST_MS_MAX,
    rest_ms_max,
)
from tidegate_testkit.simulation.swarm import Burst


@pytest.mark.parametrize(
    ("in_shard", "black_outs", "wanted"),
    [
        (None, (), REST_MS_MAX),
        (3, (), CATCH_UP_MS_MAX),
        (None, ((20_000, 3_620_000),), CATCH_UP_MS_MAX),
    ],
    ids=["a burst for all shards", "a flood for one", "hours without a node"],
)
def test_given_a_world_then_it_has_the_time_that_it_needs_to_come_to_rest(
    in_shard: int | None, black_outs: tuple[tuple[int, int], ...], wanted: int
) -> None:
    """Seed 810403: a flood goes through the inbox one message at a time, in a slow store."""
    swarm = replace(
        swarm_of(0, faults=False),
        node=replace(calm_nodes(), black_outs=black_outs),
        bursts=(Burst(1_000, (8_000, 22_000), (32_000, 44_000), in_shard),),
    )
    assert rest_ms_max(swarm) == wanted
