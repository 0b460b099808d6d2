"""What became of a seed: how much happened, which faults bit, and what was wrong."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.checks import violations
from tests.simulation.checks.case import ledger_rows
from tests.simulation.runner.runner import freed_by_counts, run
from tests.simulation.runner.swarm import Swarm
from tests.simulation.world.world import World, build

TAIL_LINES = 60


@dataclass(slots=True)
class Outcome:
    """One seed's figures.

    Attributes:
        fires: Occurrences of schedules, whatever became of them, and deliveries of recurring messages.
        events: Distinct events announced.
        messages: Messages delivered, repeats included.
        bodies: Programs that ran.
        take_overs: Nodes that the group lost (crash, drain, a pause beyond the session) and from which another one took over.
        faults: `(kind, where)` to how often it bit.
        calls: How often each transaction, and each other kind of call, reached the store.
        violations: In words; empty when all is well.
        tail: The trace's last lines, when something is wrong.
    """

    seed: int
    nodes: int
    fires: int = 0
    bodies: int = 0
    events: int = 0
    messages: int = 0
    take_overs: int = 0
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        """Kinds of injected fault that bit."""
        return sorted({kind for kind, _ in self.faults})

    def story(self, *arguments: str) -> str:
        """Returns what a failing test prints; `arguments` are those that lead to its world, beside the seed."""
        replay = " ".join(("python -m tests.simulation", *arguments, f"--seed {self.seed} --trace"))
        return "\n".join(
            [
                f"seed {self.seed}: {len(self.violations)} violations; replay with `{replay}`",
                *self.violations,
                *self.tail,
            ]
        )


def simulate(seed: int, *, faults: bool = True, swarm: Swarm | None = None) -> Outcome:
    """Runs one seed and judges it. Never raises for what the simulated system does wrong."""
    with freed_by_counts():
        return _simulated(seed, faults=faults, swarm=swarm)


def _simulated(seed: int, *, faults: bool, swarm: Swarm | None) -> Outcome:
    """A function of its own: its world is gone when it returns."""
    world = build(seed, faults=faults, swarm=swarm)
    try:
        run(world)
    except Exception:  # noqa: BLE001  # whatever the simulated system raises is a finding of this seed
        return Outcome(seed, world.cluster.swarm.nodes, violations=[traceback.format_exc()], tail=_tail(world))
    return judged(world)


def judged(world: World) -> Outcome:
    """Returns the figures and violations of a world that was run."""
    found = violations(world)
    return Outcome(
        seed=world.seed,
        nodes=world.cluster.swarm.nodes,
        fires=sum(1 for _ in ledger_rows(world)) + _recurring_fires(world),
        bodies=len(world.cluster.record.bodies),
        events=len(world.producers.announced),
        messages=len(world.cluster.record.deliveries),
        take_overs=len(world.cluster.losses),
        faults=world.trace.faults,
        calls=Counter({name: usage.calls for name, usage in world.cluster.store.memory.usage.items()}),
        violations=found,
        tail=_tail(world) if found else [],
    )


def _tail(world: World) -> list[str]:
    return list(world.trace.tail(TAIL_LINES))


def _recurring_fires(world: World) -> int:
    schedules = {user.life.name for user in world.users if user.life.definition.sends_messages}
    fires = ((each.message.split("/")[0], each.nominal) for each in world.cluster.record.deliveries)
    return len({fire for fire in fires if fire[0] in schedules})
