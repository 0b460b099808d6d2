"""Worlds whose composites give up soon: elsewhere evidence hardly ever waits until its time is over."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tidegate_testkit.simulation.definitions import Definition
    from tidegate_testkit.simulation.swarm import Swarm

TRAP: Final = "rare_expiries"
TIMEOUT: Final = "8s"


def hurried(definitions: list[Definition], swarm: Swarm) -> list[Definition]:
    """Returns the schedules; in a world with the trap, what waits for several things gives up soon."""
    if TRAP not in swarm.traps:
        return definitions
    return [
        replace(each, trigger={**each.trigger, "timeout": TIMEOUT}) if "timeout" in each.trigger else each
        for each in definitions
    ]
