"""Faults of the platform that runs programs, and of the programs themselves."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.simulation.faults.random_draws import Period, period, rate


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
    gate_downs: Periods in which no API process can be reached.
    gate_wait_ms: After which a wrapper that cannot reach the gate gives up; production's 10 min are too long for a world.
    restarts: Share of the artefacts that died and that the platform starts again, under the same name.
    names_kept_ms: How long a name lasts after its last artefact has gone; None = as long as the world.
    body_ms: How long a program runs, on the average.
    hosts: Each node has a host of its own, whose launcher sees what was started there and nothing else, as the local one does. A
        program that is asked to end, at the gate or behind it, gets its report through, and `early_death` is that of copies which the gate has refused: a
        driver that dies unseen is `lost` by design until a node of its host comes, and a world with one never comes to rest.
    rejected: Share of the submissions whose attempt is never taken, then or later.
    in_line: Attempts that a node keeps from the platform for a while.
    away: Attempts for which the platform cannot be reached for a while.
    hung: Programs that do not come to the gate.
    given_up: Programs that end before the gate, and the platform says what was wrong.
    endless: Programs that do not end by themselves.
    overseen: Of those that a wrapper of a kind of its own ends after a while, and reports as `timed_out`; with hosts all: who could be told to
        end an endless program is on its host.
    deaf: Of those that go on at first when they are asked to end.
    classed: Programs that fail and report of what class that is.
    """

    unique_names: bool = True
    lost_answer: float = 0.0
    refused: float = 0.0
    slow_start_ms: int = 200
    early_death: float = 0.0
    silent_death: float = 0.0
    lost_calls: float = 0.0
    unknown: float = 0.0
    gate_downs: tuple[Period, ...] = ()
    gate_wait_ms: int = 120_000
    restarts: float = 0.0
    names_kept_ms: int | None = None
    body_ms: int = 700
    hosts: bool = False
    rejected: float = 0.0
    in_line: float = 0.0
    away: float = 0.0
    hung: float = 0.0
    given_up: float = 0.0
    endless: float = 0.0
    overseen: float = 0.0
    deaf: float = 0.0
    classed: float = 0.0


def calm_launcher() -> LauncherFaults:
    return LauncherFaults()


def draw_launcher(chance: Random, busy_ms: int) -> LauncherFaults:
    return LauncherFaults(
        unique_names=chance.random() < 0.5,
        lost_answer=rate(chance, 0.2),
        refused=rate(chance, 0.1),
        slow_start_ms=chance.choice((100, 1_000, 8_000, 20_000)),
        early_death=rate(chance, 0.25),
        silent_death=rate(chance, 0.15),
        lost_calls=rate(chance, 0.3),
        unknown=rate(chance, 0.3),
        gate_downs=tuple(period(chance, busy_ms, 2_000, 30_000) for _ in range(chance.choice((0, 0, 1)))),
        gate_wait_ms=chance.choice((15_000, 120_000)),
        restarts=rate(chance, 0.8),
        names_kept_ms=chance.choice((None, 0, 0, 3_000)),
    )
