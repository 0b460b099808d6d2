"""A trap about launchers and programs that do not do as they are told."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tests.simulation.faults.node_faults import Trouble, strikes
from tests.simulation.runner.swarm import Swarm
from tests.simulation.world.transaction_names import OF_REJECTIONS

GATE_WAIT_MS: Final = 15_000
KNOBS: Final = {
    "shard.launch_values:SUBMIT_WITHIN_MS": (20_000, 40_000),
    "runs.run_lifecycle:SUBMIT_TRIES_MAX": (2, 3),
    "runs.run_lifecycle:SUBMIT_BACKOFF_MS": (500, 2_000),
}
"""How long, and how often, a run may wait for its launcher: a world has minutes where production has an hour."""
START_WITHIN: Final = "runs.run_lifecycle:START_WITHIN_MS"
BEYOND_GATE_WAIT_MS: Final = 5_000
"""A program gives up its wait for the gate before its run does, as in production."""
STEPS: Final = (
    *OF_REJECTIONS,
    *OF_REJECTIONS,
    "look",
    "look",
    "gone",
    "cancel_run",
    "cancel_run",
    "submitted",
    "mixed",
)
"""At which owners fall, or stand still."""

HUNTED: Final = 0.4
"""Share of the worlds in which nearly each write of a rejection meets a fault."""

RAREST_FALLS: Final = 12
RAREST_DRAINS: Final = 8
RAREST_QUEUE_MS: Final = 300.0
"""As long as the busiest nodes of drawn worlds take."""


def stubborn(swarm: Swarm, chance: Random) -> Swarm:
    """The platform will never take some attempts, nodes keep some in line, and it cannot be reached for others for long; programs hang before
    the gate, or end there for a reason, or do not end at all until somebody asks for it, some not even then; others say why they failed. Owners
    fall at the steps of all that.
    """
    launcher = replace(
        swarm.launcher,
        body_ms=chance.choice((700, 3_000)),
        rejected=chance.choice((0.05, 0.15, 0.3)),
        in_line=chance.choice((0.0, 0.1, 0.3)),
        away=chance.choice((0.0, 0.1, 0.2)),
        hung=chance.choice((0.0, 0.05, 0.15)),
        given_up=chance.choice((0.0, 0.05, 0.15)),
        endless=chance.choice((0.05, 0.1, 0.3)),
        overseen=chance.choice((0.0, 0.3, 0.7)),
        deaf=chance.choice((0.0, 0.5)),
        classed=chance.choice((0.0, 0.1, 0.3)),
    )
    lost_answer = max(launcher.lost_answer, chance.choice((0.0, 0.3)))
    if not launcher.hosts:
        # With hosts a program that has passed the gate unheard, and gives up, is lost by design: what lets it do so stays as it is.
        launcher = replace(launcher, gate_wait_ms=GATE_WAIT_MS, lost_answer=lost_answer)
    falls = strikes(chance, STEPS, 5, within=(2_000, 50_000))
    store = replace(swarm.store, aimed=tuple(sorted({*swarm.store.aimed, *OF_REJECTIONS})))
    if chance.random() < HUNTED:
        store = replace(store, hunted=(*store.hunted, *OF_REJECTIONS))
    knobs = tuple((name, chance.choice(values)) for name, values in KNOBS.items())
    knobs += ((START_WITHIN, launcher.gate_wait_ms + BEYOND_GATE_WAIT_MS),)
    node = replace(swarm.node, trouble=(*swarm.node.trouble, *falls))
    return replace(swarm, launcher=launcher, store=store, node=node, knobs=(*swarm.knobs, *knobs))


def rarest(swarm: Swarm, chance: Random) -> Swarm:
    """What even worlds of `stubborn` and `sources` hardly make meet; it is set beside the two, and in no world that is drawn. Owners fall, and
    stand still more often, at rejections; each program that has to be told to end lets requests to end pass; what is read of a topic waits for
    its busy reader, who is told to hand over meanwhile.
    """
    launcher = replace(swarm.launcher, rejected=max(swarm.launcher.rejected, 0.3), endless=0.3, deaf=1.0)
    broker = replace(swarm.broker, queue_ms=RAREST_QUEUE_MS)
    falls = strikes(chance, OF_REJECTIONS, RAREST_FALLS, within=(2_000, 60_000), kinds=("crash", "pause", "pause"))
    drains = tuple(
        Trouble(chance.randint(5_000, swarm.busy_ms), "drain", chance.randint(200, 2_000)) for _ in range(RAREST_DRAINS)
    )
    node = replace(swarm.node, trouble=(*swarm.node.trouble, *falls, *drains))
    return replace(swarm, launcher=launcher, broker=broker, node=node)
