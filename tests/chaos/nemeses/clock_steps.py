"""A node whose machine's wall clock steps, by seconds or by an hour, ahead or back, and is put right after a while."""

from __future__ import annotations

import time

from tests.chaos.nemeses.nemesis import Blow, Nemesis
from tests.chaos.rig.rig import Rig
from tests.support.cluster.process import ClusterProcess
from tests.support.cluster.until import now_ms

STEPS_MS = (-3_600_000, -5_000, -1_500, 1_500, 5_000, 3_600_000)
"""All beyond the 500 ms that a node's clock may be off; an hour is what a wrong zone or a summer time makes."""
OFF_S = (12.0, 18.0)
"""Longer than two heartbeats of 5 s, by which the brokers' time would end a node that had followed the step."""


def clock_step(rig: Rig, node: ClusterProcess) -> Blow:
    """Steps a node's clock and, while it goes on by the time that it had, sets the clock right."""
    at = now_ms()
    rig.cluster.step_clock(node, rig.chance.choice(STEPS_MS))
    try:
        # The fault itself, no synchronisation.
        time.sleep(rig.chance.uniform(*OFF_S))
    finally:
        rig.cluster.step_clock(node, 0)
    return Blow((node.name,), at, now_ms(), felt={"clock_steps": 1})


CLOCK_STEP = Nemesis("clock step", clock_step, ("clock_stepped", "clock_steps"))
