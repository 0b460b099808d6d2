"""W2: one-shot messages that are all due at one instant, created through Kafka long before, spread over all shards."""

from __future__ import annotations

from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.one_shot_messages import QUICKLY, OneShots, fire_one_shots
from tests.benchmarks.rig.workload import Case, Figures, Parameters, Workload


def measure(stack: Stack, parameters: Parameters) -> Figures:
    return fire_one_shots(stack, OneShots(over_s=0.0, **parameters))


WORKLOAD = Workload(
    name="W2",
    title="20,000 one-shot messages due at one instant: when the last one is readable, CPU of the node for each",
    measure=measure,
    full=[Case("", {"messages": 20_000, "ahead_s": 90.0})],
    smoke=[Case("", {"messages": 200, "ahead_s": 2.0, **QUICKLY})],
)
