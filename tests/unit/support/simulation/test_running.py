from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.checks.quiescence import DELIVERED_WITHIN_MS, open_work
from tests.simulation.faults.node_faults import calm_nodes
from tests.simulation.runner.runner import CATCH_UP_MS_MAX, rest_ms_max
from tests.simulation.runner.swarm import Burst
from tests.simulation.runner.world_drawing import swarm_of
from tests.unit.support.simulation.checks.worlds import calm_world
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.message import MessageTimer
from tidegate_core.rows.store_operations import Delete, Put


@pytest.mark.parametrize(
    ("in_shard", "black_outs", "wanted"),
    [(3, (), CATCH_UP_MS_MAX)],
    ids=["a flood for one"],
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


def test_given_a_message_that_waits_for_its_next_attempt_then_the_world_is_not_at_rest() -> None:
    """Seed 22003963: its fifth attempt came 40 s behind the fourth, and the world was taken to have ended before."""
    world = calm_world()
    assert world.at_rest
    now = world.cluster.timeline.now
    due, past = (
        MessageTimer(slot=slot, id="m", version="-", origin="", attempt=5, expires_at=0)
        for slot in (now + 40_000, now - DELIVERED_WITHIN_MS)
    )
    for row, is_open in ((past, False), (due, True)):
        key = row.key(0)
        world.cluster.store.memory.write([Put(key, to_item(row, key))])
        found = [each for each in open_work(world) if key.sk in each]
        world.cluster.store.memory.write([Delete(key)])
        assert found == [f"{key.pk} {key.sk}"] * is_open
