"""A failing world is made small, and stays one that fails in the same way."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.faults.broker_faults import calm_broker
from tests.simulation.faults.group_faults import calm_group
from tests.simulation.faults.launcher_faults import calm_launcher
from tests.simulation.faults.node_faults import Trouble
from tests.simulation.faults.store_faults import calm_store
from tests.simulation.faults.topic_faults import calm_topics
from tests.simulation.runner.minimizer import BUSY_MS_MIN, minimise
from tests.simulation.runner.outcome import Outcome
from tests.simulation.runner.swarm import Swarm
from tests.simulation.runner.world_drawing import swarm_of, trapped

CRASH = Trouble(20_000, "crash", 500)
DRAIN = Trouble(30_000, "drain", 500)


def a_world() -> Swarm:
    swarm = trapped(swarm_of(3), 3, "stalled_loads")
    return replace(
        swarm,
        store=replace(swarm.store, late=0.02, duplicate=0.01),
        node=replace(swarm.node, trouble=(CRASH, DRAIN)),
        knobs=(("engine.shard_writer:GROUP_MAX", 1),),
    )


def outcome_of(seed: int, *violations: str) -> Outcome:
    return Outcome(seed, 3, violations=list(violations))


def test_given_a_bug_that_needs_a_late_write_and_a_crash_then_only_they_are_left() -> None:
    def judge(seed: int, swarm: Swarm) -> Outcome:
        broken = swarm.store.late > 0 and CRASH in swarm.node.trouble
        return outcome_of(seed, "I2: twice") if broken else outcome_of(seed)

    least = minimise(3, a_world(), judge)
    swarm = least.swarm
    assert swarm.node.trouble == (CRASH,)
    assert swarm.store == replace(calm_store(), late=0.02)
    assert (swarm.broker, swarm.launcher, swarm.group) == (calm_broker(), calm_launcher(), calm_group())
    assert (swarm.bursts, swarm.knobs, swarm.busy_ms, swarm.topics) == ((), (), BUSY_MS_MIN, calm_topics())
    assert (least.seed, least.invariant) == (3, "I2")


def test_given_another_invariant_that_breaks_in_the_smaller_world_then_that_is_no_smaller_case() -> None:
    def judge(seed: int, swarm: Swarm) -> Outcome:
        return outcome_of(seed, "I2: twice" if swarm.node.trouble == (CRASH, DRAIN) else "I1: lost")

    assert minimise(3, a_world(), judge).swarm.node.trouble == (CRASH, DRAIN)
