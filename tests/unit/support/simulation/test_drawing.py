"""A seed's world: the same each time, calm without faults, and what is added to one part leaves the others as they were."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.faults.broker_faults import calm_broker
from tests.simulation.faults.scenarios import TRAPS
from tests.simulation.faults.store_faults import calm_store
from tests.simulation.runner.world_drawing import source, swarm_of, trapped

SEEDS = range(200)


def test_given_a_seed_then_its_world_is_the_same_each_time() -> None:
    assert [swarm_of(seed) for seed in SEEDS] == [swarm_of(seed) for seed in SEEDS]


def test_given_no_faults_then_the_world_is_as_large_and_calm() -> None:
    calm, hostile = swarm_of(7, faults=False), swarm_of(7)
    assert (calm.store, calm.broker, calm.node.trouble, calm.traps) == (calm_store(), calm_broker(), (), ())
    assert (calm.nodes, calm.shards, calm.topic_partitions) == (hostile.nodes, hostile.shards, hostile.topic_partitions)


def test_given_two_parts_of_a_seed_then_their_chances_are_their_own() -> None:
    assert source(1, "store").random() != source(1, "broker").random()
    assert source(1, "store").random() == source(1, "store").random()


@pytest.mark.parametrize("name", [name for name, trap in TRAPS.items() if trap.share])
def test_given_many_seeds_then_each_trap_is_set_in_its_share(name: str) -> None:
    share = sum(name in swarm_of(seed).traps for seed in SEEDS) / len(SEEDS)
    assert TRAPS[name].share / 3 < share < TRAPS[name].share * 3


@pytest.mark.parametrize("name", [name for name in TRAPS if name.startswith("stalled")])
def test_given_a_trap_that_stalls_calls_then_it_is_over_before_the_faults_end(name: str) -> None:
    swarm = trapped(swarm_of(3, faults=False), 3, name)
    store = swarm.store
    periods = (*store.stalled_loads, *store.stalled_batches, *store.stalled_checkpoints)
    assert periods
    assert max(end for _begin, end in periods) < swarm.busy_ms
    assert replace(swarm, store=calm_store()).bursts


@pytest.mark.parametrize("names", [("silence", "copies"), ("copies", "silence"), ("rare_outages", "lost_hosts")])
def test_given_hosts_of_their_own_then_a_program_waits_for_the_gate_for_longer_than_the_store_and_the_gate_are_away(
    names: tuple[str, str],
) -> None:
    for seed in SEEDS:
        swarm = swarm_of(seed)
        for name in names:
            swarm = trapped(swarm, seed, name)
        away = (*swarm.store.brown_outs, *swarm.launcher.gate_downs)
        assert swarm.launcher.gate_wait_ms > sum(end - begin for begin, end in away) + 60_000
