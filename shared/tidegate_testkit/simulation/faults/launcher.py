"""Faults of the platform that runs programs, and of the programs themselves."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tidegate_testkit.simulation.faults.draws import rate


@dataclass(frozen=True, slots=True)
class LauncherFaults:
    """Attributes:
    unique_names: A second submission under a name is adopted; else it is a second artefact.
    lost_answer: Accepted, and the node is told that it is unknown.
    refused: Not reachable.
    slow_start_ms: Largest delay from acceptance to the program's first act.
    early_death, silent_death: Dies before the gate; dies in its body without a report.
    lost_calls: Share of calls to the API that time out, half of them after they took effect.
    unknown: Lookups that cannot tell.
    """

    unique_names: bool = True
    lost_answer: float = 0.0
    refused: float = 0.0
    slow_start_ms: int = 200
    early_death: float = 0.0
    silent_death: float = 0.0
    lost_calls: float = 0.0
    unknown: float = 0.0


def calm_launcher() -> LauncherFaults:
    return LauncherFaults()


def draw_launcher(chance: Random) -> LauncherFaults:
    return LauncherFaults(
        unique_names=chance.random() < 0.5,
        lost_answer=rate(chance, 0.2),
        refused=rate(chance, 0.1),
        slow_start_ms=chance.choice((100, 1_000, 8_000, 20_000)),
        early_death=rate(chance, 0.15),
        silent_death=rate(chance, 0.15),
        lost_calls=rate(chance, 0.3),
        unknown=rate(chance, 0.3),
    )
