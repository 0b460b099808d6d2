"""Faults of nodes: they die, freeze, are told to end, and their clocks deviate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

from tests.simulation.faults.random_draws import Period
from tests.simulation.world.transaction_names import OWNERS, RARE, RAREST

DRIFT_MS_MAX = 400
"""Below the 500 ms at which a node gives its topic partitions up (DESIGN 3)."""

PAUSES_MS = (1_500, 5_000, 7_000, 11_500, 12_000, 18_000)
"""Within and beyond the session of either group protocol, and close to the longer one."""

MOMENTS = (*OWNERS, *RARE, *RARE, *RAREST, *RAREST)
"""Transactions that a trouble may wait for; what is rare more often, because most of those never come."""

TroubleKind: TypeAlias = Literal["crash", "pause", "drain"]


@dataclass(frozen=True, slots=True, order=True)
class Trouble:
    """Something that happens to one node.

    Attributes:
        at: Milliseconds after the start.
        length: How long it is frozen, or how long until it is started again.
        holder_of: Hits whoever has been assigned this ownership topic partition; None = any node, of those that hold some.
        once_applied: Not at `at`, but to the sender of the first transaction of this name that takes effect from then on,
            at that very moment: it never hears of it.
    """

    at: int
    kind: TroubleKind
    length: int
    holder_of: int | None = None
    once_applied: str | None = None


@dataclass(frozen=True, slots=True)
class NodeFaults:
    """Attributes:
    trouble: In the order of their instants.
    drift_ms: Largest deviation of a node's clock.
    steps: Whether clocks step while running.
    late_loss_ms: Delay of the news that membership was lost.
    black_outs: Periods in which there is no node at all.
    """

    trouble: tuple[Trouble, ...]
    drift_ms: int = 0
    steps: bool = False
    late_loss_ms: int = 0
    black_outs: tuple[Period, ...] = ()


def calm_nodes() -> NodeFaults:
    return NodeFaults(())


def draw_nodes(chance: Random, busy_ms: int) -> NodeFaults:
    trouble: list[Trouble] = []
    # One in each half of the time is of the kind that always makes others take over.
    for begin, end in ((5_000, busy_ms // 2 - 5_000), (busy_ms // 2 + 5_000, busy_ms)):
        kind: TroubleKind = chance.choice(("crash", "drain"))
        trouble.append(Trouble(chance.randint(begin, end), kind, chance.randint(200, 9_000)))
    for _ in range(chance.randint(0, 3)):
        kind = chance.choice(("crash", "crash", "pause", "pause", "drain"))
        length = chance.choice(PAUSES_MS) if kind == "pause" else chance.randint(200, 9_000)
        trouble.append(Trouble(chance.randint(4_000, busy_ms), kind, length))
    for _ in range(chance.randint(4, 7)):
        kind = chance.choice(("crash", "pause"))
        length = chance.choice(PAUSES_MS) if kind == "pause" else chance.randint(200, 9_000)
        at = chance.randint(2_000, busy_ms * 2 // 3)
        trouble.append(Trouble(at, kind, length, once_applied=chance.choice(MOMENTS)))
    return NodeFaults(
        trouble=tuple(sorted(trouble, key=lambda each: each.at)),
        drift_ms=chance.choice((0, 100, DRIFT_MS_MAX)),
        steps=chance.random() < 0.3,
        late_loss_ms=chance.choice((0, 0, 500, 3_000)),
    )


def strikes(
    chance: Random,
    steps: Sequence[str],
    number: int,
    within: tuple[int, int] = (4_000, 50_000),
    kinds: Sequence[TroubleKind] = ("crash", "crash", "pause"),
) -> tuple[Trouble, ...]:
    """Returns falls and freezes of whoever has just taken one of these steps, each from some time on."""
    return tuple(
        Trouble(
            chance.randint(*within), chance.choice(kinds), chance.randint(200, 9_000), once_applied=chance.choice(steps)
        )
        for _ in range(number)
    )
