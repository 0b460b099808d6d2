"""Makes a failing seed's world as small as it can be while it still breaks the same invariant.

The seed stays, the swarm shrinks: faults are turned off one by one, traps, bursts, knobs and troubles are left out, the time is
cut. Each step draws another history, so a step is kept only when the same invariant is still broken, in this seed or in one of
a few others that stand in for it: a race that needs a lucky history is found again sooner than by insisting on one number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final, TypeAlias

from tests.simulation.faults.broker_faults import calm_broker
from tests.simulation.faults.group_faults import calm_group
from tests.simulation.faults.launcher_faults import calm_launcher
from tests.simulation.faults.node_faults import Trouble, calm_nodes
from tests.simulation.faults.store_faults import calm_store
from tests.simulation.faults.topic_faults import calm_topics
from tests.simulation.runner.outcome import Outcome, simulate
from tests.simulation.runner.swarm import Swarm

Judge: TypeAlias = Callable[[int, Swarm], Outcome]
"""Runs a seed in a world."""

TRIES: Final = 4
"""Seeds tried for each smaller world, the failing one first."""
BUSY_MS_MIN: Final = 10_000
CALM: Final[Mapping[str, Any]] = {
    "store": calm_store(),
    "broker": calm_broker(),
    "node": calm_nodes(),
    "launcher": calm_launcher(),
    "group": calm_group(),
    "topics": calm_topics(),
}
"""Each part as it is when nothing is wrong with it."""
NAMES: Final = {"node": "calm_nodes()"}
"""How code makes such a part, where it is not `calm_<part>()`."""


@dataclass(frozen=True, slots=True)
class Minimal:
    """What is left.

    Attributes:
        seed: With which it fails; maybe not the one that was given.
        invariant: What is broken, such as `I2`.
        worlds: How many were run.
    """

    seed: int
    swarm: Swarm
    invariant: str
    outcome: Outcome
    worlds: int


class NothingToMinimise(Exception):
    """The seed breaks nothing."""


def minimise(seed: int, swarm: Swarm, judge: Judge | None = None) -> Minimal:
    """Shrinks until no smaller world breaks the invariant.

    Raises:
        NothingToMinimise: The world as given breaks nothing.
    """
    judged = judge or (lambda number, world: simulate(number, swarm=world))
    outcome = judged(seed, swarm)
    if not outcome.violations:
        raise NothingToMinimise(f"seed {seed} breaks nothing in this world")
    least = Minimal(seed, swarm, invariant_of(outcome), outcome, 1)
    while True:
        smaller = _next(least, judged)
        if smaller.swarm == least.swarm:
            return smaller
        least = smaller


def invariant_of(outcome: Outcome) -> str:
    """Returns what the first violation says is broken."""
    return outcome.violations[0].split(":", 1)[0]


def _next(least: Minimal, judge: Judge) -> Minimal:
    """One round: each thing that can be left out is left out, if the invariant is still broken without it."""
    for shrink in list(_steps(least.swarm)):
        smaller = shrink(least.swarm)
        if smaller == least.swarm:
            continue
        for number in (least.seed, *range(least.seed + 1, least.seed + TRIES)):
            outcome = judge(number, smaller)
            least = replace(least, worlds=least.worlds + 1)
            if any(violation.split(":", 1)[0] == least.invariant for violation in outcome.violations):
                least = Minimal(number, smaller, least.invariant, outcome, least.worlds)
                break
    return least


def _steps(swarm: Swarm) -> Iterator[Callable[[Swarm], Swarm]]:
    """Yields what may be left out, the largest first: a whole part, then its faults one by one."""
    lists = ("bursts", "knobs")
    yield from (partial(_cleared, name=name) for name in lists)
    yield from (partial(_calmed, part=part) for part in CALM)
    yield from (partial(_without, name=name, thing=each) for name in lists for each in getattr(swarm, name))
    yield from (partial(_without_trouble, trouble=trouble) for trouble in swarm.node.trouble)
    for part, calm in CALM.items():
        yield from (partial(_calmed_in, part=part, name=each.name) for each in fields(calm) if each.name != "trouble")
    yield _shortened


def _cleared(world: Swarm, name: str) -> Swarm:
    return _with(world, name, ())


def _calmed(world: Swarm, part: str) -> Swarm:
    return _with(world, part, CALM[part])


def _without(world: Swarm, name: str, thing: Any) -> Swarm:
    return _with(world, name, tuple(each for each in getattr(world, name) if each != thing))


def _without_trouble(world: Swarm, trouble: Trouble) -> Swarm:
    left = tuple(each for each in world.node.trouble if each != trouble)
    return replace(world, node=replace(world.node, trouble=left))


def _calmed_in(world: Swarm, part: str, name: str) -> Swarm:
    calm = getattr(CALM[part], name)
    return _with(world, part, replace(getattr(world, part), **{name: calm}))


def _with(world: Swarm, name: str, value: Any) -> Swarm:
    changed: dict[str, Any] = {name: value}
    return replace(world, **changed)


def _shortened(world: Swarm) -> Swarm:
    return replace(world, busy_ms=max(BUSY_MS_MIN, world.busy_ms // 2))


def as_code(swarm: Swarm) -> str:
    """Returns the swarm as an expression: of each part only what differs from a calm one is named."""
    named = (each.name for each in fields(swarm) if each.name != "traps")
    return "\n".join(["Swarm(", *(f"    {name}={_part_as_code(name, getattr(swarm, name))}," for name in named), ")"])


def _part_as_code(name: str, part: Any) -> str:
    if name not in CALM:
        return repr(part)
    calm, made = CALM[name], NAMES.get(name, f"calm_{name}()")
    changed = [each.name for each in fields(part) if getattr(part, each.name) != getattr(calm, each.name)]
    settings = ", ".join(f"{each}={getattr(part, each)!r}" for each in changed)
    return f"replace({made}, {settings})" if changed else made
