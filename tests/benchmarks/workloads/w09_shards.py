"""W9: what more shards, and a second node, cost each fire."""

from __future__ import annotations

from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.one_shot_messages import QUICKLY, OneShots, fire_one_shots
from tests.benchmarks.rig.workload import Case, Figures, Parameters, Workload

SPREAD = {"messages": 20_000, "over_s": 20.0, "ahead_s": 90.0}


def measure(stack: Stack, parameters: Parameters) -> Figures:
    """Fires messages on so many nodes; CPU and units are of all of them."""
    plan = {name: value for name, value in parameters.items() if name != "nodes"}
    with stack.with_nodes(parameters["nodes"]):
        return fire_one_shots(stack, OneShots(**plan))


WORKLOAD = Workload(
    name="W9",
    title="20,000 one-shot messages over 20 s on 16, 64 and 256 shards, by one and by two nodes",
    measure=measure,
    full=[
        Case(f"{shards} shards, {nodes} node{'s' if nodes > 1 else ''}", {**SPREAD, "nodes": nodes}, shards)
        for shards in (16, 64, 256)
        for nodes in (1, 2)
    ],
    smoke=[Case("two nodes", {"messages": 20, "over_s": 0.5, "ahead_s": 1.5, "nodes": 2, **QUICKLY})],
)
