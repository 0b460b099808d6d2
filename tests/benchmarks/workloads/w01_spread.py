"""W1: one-shot messages spread over 20 seconds, stored before the first is due."""

from __future__ import annotations

from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.one_shot_messages import QUICKLY, OneShots, fire_one_shots
from tests.benchmarks.rig.workload import Case, Figures, Parameters, Workload


def measure(stack: Stack, parameters: Parameters) -> Figures:
    return fire_one_shots(stack, OneShots(**parameters))


WORKLOAD = Workload(
    name="W1",
    title="20,000 one-shot messages over 20 s: lateness at the consumer, units of a whole life",
    measure=measure,
    full=[
        Case("", {"messages": 20_000, "over_s": 20.0, "ahead_s": 60.0}),
        Case("keyed", {"messages": 20_000, "over_s": 20.0, "ahead_s": 90.0, "keyed": True}),
    ],
    smoke=[Case("", {"messages": 100, "over_s": 1.0, "ahead_s": 2.0, **QUICKLY})],
)
