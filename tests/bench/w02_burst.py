"""W2: one-shot messages that are all due at one instant, created through Kafka long before, spread over all shards."""

from __future__ import annotations

from tidegate_testkit.benchmarks.one_shots import QUICKLY, OneShots, fire_one_shots
from tidegate_testkit.benchmarks.stack import Stack
from tidegate_testkit.benchmarks.workload import Case, Figures, Parameters, Workload


def measure(stack: Stack, parameters: Parameters) -> Figures:
    return fire_one_shots(stack, OneShots(over_s=0.0, **parameters))


WORKLOAD = Workload(
    name="W2",
    title="20,000 one-shot messages due at one instant: when the last one is readable, CPU of the node for each",
    measure=measure,
    full=[Case("", {"messages": 20_000, "ahead_s": 90.0})],
    smoke=[Case("", {"messages": 200, "ahead_s": 2.0, **QUICKLY})],
)
