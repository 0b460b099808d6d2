"""A roll to another release, and the command that ends it: nodes of both serve side by side meanwhile (decision 26)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.faults.node_faults import Trouble

if TYPE_CHECKING:
    from tests.simulation.runner.swarm import Swarm

KNOBS: Final = (
    ("language.triggers.search:STEPS_PER_DECISION", 24),
    ("rows.node_status:SILENT_MS", 3_500),
)
"""Searches of a schedule with so many exclusions are cut, and a node that says nothing is believed to be gone before its group believes it."""
LENGTHS_MS: Final = (5_000, 5_000, 9_000, 16_000, 24_000)
"""A node that stands still for the first is given up by nobody but whoever looks at its card."""
BUSY_MS: Final = 116_000
"""Beyond the minute that a schedule leaves out (`upgrading.py`)."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Attributes:
    rolled: When each node is replaced by one of the newer release, by its number, ms after the start; until then it comes back
        as what it was, whatever befalls it.
    finish: From when on somebody tries to have rows written in the newer version.
    straggler: A node by its number, and what befalls it: it comes back, or goes on, as what it was.
    """

    rolled: tuple[int, ...]
    finish: int
    straggler: tuple[int, Trouble]


def two_releases(swarm: Swarm, chance: Random) -> Swarm:
    """All nodes are of the older release and are replaced one after the other; some of them fall or stand still meanwhile, for longer
    than they are believed to live, and one of these is not replaced before it is back: by then rows may be written that it would
    misread. Somebody tries to have that, also too early.
    """
    rolled = [chance.randint(5_000, 20_000) for _ in range(swarm.nodes)]
    falls = tuple(
        Trouble(chance.randint(4_000, 34_000), chance.choice(("crash", "pause", "pause")), chance.choice(LENGTHS_MS))
        for _ in range(3)
    )
    straggler, begin = chance.randrange(swarm.nodes), chance.randint(12_000, 24_000)
    length = chance.choice(LENGTHS_MS)
    rolled[straggler] = begin + length + chance.randint(4_000, 20_000)
    return replace(
        swarm,
        busy_ms=max(swarm.busy_ms, BUSY_MS),
        upgrade=Upgrade(
            tuple(rolled),
            chance.randint(6_000, 24_000),
            (straggler, Trouble(begin, chance.choice(("crash", "pause")), length)),
        ),
        node=replace(swarm.node, trouble=(*swarm.node.trouble, *falls)),
        knobs=(*swarm.knobs, *KNOBS),
    )
