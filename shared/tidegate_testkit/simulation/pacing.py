"""Worlds in which schedules share a rate that is too narrow for all that they make."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tidegate_testkit.simulation.definitions import Definition
    from tidegate_testkit.simulation.swarm import Swarm

RATES: Final = "rates"
"""The trap."""
OFTEN: Final = ("tock", "bell", "crowd")
"""Begins of the names of schedules that fire every few seconds."""
SELDOM: Final = ("count", "pair")
TIME_OUT: Final = "15s"
"""For what fires more often than it may run."""


def paced(chance: Random, definitions: list[Definition], swarm: Swarm) -> list[Definition]:
    """Returns the schedules; in a world with the trap, some of them share a rate."""
    if RATES not in swarm.traps:
        return definitions
    often = [each.name for each in definitions if each.name.startswith(OFTEN) and not each.sends_messages]
    members = {*chance.sample(often, min(len(often), chance.randint(2, 5))), chance.choice(SELDOM)}
    per, most = f"{chance.randint(4, 9)}s", chance.randint(1, 3)
    differ, late = chance.random() < 0.3, chance.choice(("abort", "force"))
    found: list[Definition] = []
    for each in definitions:
        if each.name not in members:
            found.append(each)
            continue
        own = most + 1 if differ and chance.random() < 0.5 else most
        member = replace(each, rate=(own, per))
        if each.name in often:
            member = replace(member, pending_timeout=each.pending_timeout or TIME_OUT, late=late)
        found.append(member)
    return found
