"""Liveness: a healed world comes to rest, with every request answered, every record read and nothing left open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate_testkit.simulation.world import World

SHOWN = 6


def check_rest(world: World) -> Iterator[str]:
    from tidegate_testkit.simulation.world import open_work

    if not world.at_rest:
        left = open_work(world)
        yield f"liveness: {len(left)} things are still open long after all faults have ended: {'; '.join(left[:SHOWN])}"
