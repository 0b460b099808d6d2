"""Draws a seed's world.

Each seed has its own mixture (swarm testing): a world in which every fault is always on hides what a single one does. Each
part is drawn from a source of its own, so that what is added to one leaves the others as they were.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.simulation.faults.broker_faults import calm_broker, draw_broker
from tests.simulation.faults.group_faults import calm_group, draw_group
from tests.simulation.faults.launcher_faults import calm_launcher, draw_launcher
from tests.simulation.faults.node_faults import calm_nodes, draw_nodes
from tests.simulation.faults.scenarios import TRAPS
from tests.simulation.faults.small_limits import draw_knobs
from tests.simulation.faults.store_faults import calm_store, draw_store
from tests.simulation.faults.topic_faults import (
    TopicFaults,
    calm_topics,
    draw_topics,
    with_a_map_that_follows,
    with_open_transactions,
)
from tests.simulation.runner.swarm import Swarm


def source(seed: int, name: str) -> Random:
    """Returns a source of chance that no other part of the seed's world uses."""
    return Random(f"{seed}/{name}")


def swarm_of(seed: int, *, faults: bool = True) -> Swarm:
    """Draws a world; without faults it is one in which everything works."""
    size = source(seed, "size")
    topic_partitions = size.randint(3, 8)
    busy_ms = size.randint(52, 80) * 1_000
    swarm = Swarm(
        nodes=size.randint(3, 4),
        topic_partitions=topic_partitions,
        event_topic_partitions=size.randint(2, 6),
        shards=size.randint(max(8, topic_partitions), 16),
        busy_ms=busy_ms,
        store=draw_store(source(seed, "store"), busy_ms) if faults else calm_store(),
        broker=draw_broker(source(seed, "broker"), busy_ms) if faults else calm_broker(),
        node=draw_nodes(source(seed, "node"), busy_ms) if faults else calm_nodes(),
        launcher=draw_launcher(source(seed, "launcher"), busy_ms) if faults else calm_launcher(),
        group=draw_group(source(seed, "group")) if faults else calm_group(),
        topics=_drawn_topics(seed, busy_ms) if faults else calm_topics(),
        knobs=draw_knobs(source(seed, "knobs")) if faults else (),
    )
    for name, trap in TRAPS.items():
        if faults and source(seed, f"share of {name}").random() < trap.share:
            swarm = trapped(swarm, seed, name)
    return swarm


def _drawn_topics(seed: int, busy_ms: int) -> TopicFaults:
    drawn = with_a_map_that_follows(draw_topics(source(seed, "topics"), busy_ms), source(seed, "map"))
    return with_open_transactions(drawn, source(seed, "transactions"), busy_ms)


def trapped(swarm: Swarm, seed: int, name: str) -> Swarm:
    """Returns the world with this trap in it."""
    return replace(TRAPS[name].set(swarm, source(seed, f"trap {name}")), traps=(*swarm.traps, name))
