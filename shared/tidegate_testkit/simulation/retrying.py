"""Schedules that try again what has failed (SEMANTICS 8)."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tidegate_testkit.simulation.definitions import Definition
    from tidegate_testkit.simulation.swarm import Swarm

FAILURES: Final = "failures"
"""The trap whose worlds have only such schedules."""
RETRY_SHARE: Final = 0.4
"""Of the schedules of any other world."""


def with_retries(chance: Random, drawn: list[Definition], swarm: Swarm) -> list[Definition]:
    """Returns the schedules, some of them with further tries of what failed."""
    share = 1 if FAILURES in swarm.traps else RETRY_SHARE
    tries = [chance.choice((1, 2)) if chance.random() < share else 0 for _ in drawn]
    return [
        each if each.sends_messages else replace(each, tries=number) for each, number in zip(drawn, tries, strict=True)
    ]
