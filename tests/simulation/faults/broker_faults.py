"""Faults of the broker: of its logs, of producers' acknowledgements, of pokes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.simulation.faults.random_draws import Period, period, rate

TOPICS = 8
"""Of a world."""
LAST_TOPIC = -1
"""In place of its number."""


@dataclass(frozen=True, slots=True)
class BrokerFaults:
    """Attributes:
    fetch_ms: Mean delay from append to delivery.
    queue_ms: Mean wait of what was fetched, until a busy node deals with it.
    lost_ack: A record is there and its producer is told that it may not be.
    not_appended: It is not there and its producer is told the same.
    lost_pokes: Share of pokes that reach nobody.
    downs: Periods without broker and coordinator.
    leaderless: Periods in which one topic takes nothing and gives nothing, by its number in the order of their making, or
            `LAST_TOPIC`.
    refusals: Periods in which the topic `sink-b` takes nothing.
    marks: Share of users' records that are transactions of their own: behind them stands a mark, which is no record.
    """

    fetch_ms: float
    lost_ack: float = 0.0
    not_appended: float = 0.0
    lost_pokes: float = 0.0
    downs: tuple[Period, ...] = ()
    leaderless: tuple[tuple[int, Period], ...] = ()
    refusals: tuple[Period, ...] = ()
    queue_ms: float = 0.0
    marks: float = 0.0


def calm_broker() -> BrokerFaults:
    return BrokerFaults(fetch_ms=5)


def draw_broker(chance: Random, busy_ms: int) -> BrokerFaults:
    return BrokerFaults(
        fetch_ms=chance.choice((3, 10, 40, 150)),
        lost_ack=rate(chance, 0.08),
        not_appended=rate(chance, 0.08),
        lost_pokes=chance.choice((0.0, 0.1, 0.5, 1.0)),
        downs=tuple(period(chance, busy_ms, 500, 15_000) for _ in range(chance.choice((0, 0, 0, 1)))),
        leaderless=tuple(
            (chance.randrange(TOPICS), period(chance, busy_ms, 1_000, 12_000)) for _ in range(chance.choice((0, 1, 3)))
        ),
        refusals=tuple(period(chance, busy_ms, 2_000, 20_000) for _ in range(chance.choice((0, 1)))),
        queue_ms=chance.choice((0.0, 0.0, 30.0, 300.0)),
        marks=chance.choice((0.0, 0.0, 0.0, 0.3)),
    )
