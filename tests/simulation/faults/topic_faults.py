"""What people do to the events topic, and to one of their own that a source names, while the cluster runs: they add topic partitions, or make it anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.simulation.faults.random_draws import Period, period

GROWN_SHARE = 0.25
RECREATED_SHARE = 0.15
SOURCE_RECREATED_SHARE = 0.4
"""Of few worlds: most have no source."""
OPEN_TRANSACTION_SHARE = 0.15
MAP_FOLLOWS_SHARE = 0.6
"""Of the worlds in which the requests topic grows."""


@dataclass(frozen=True, slots=True)
class TopicFaults:
    """Instants are milliseconds after the start.

    Attributes:
        grown: When the events topic gets further topic partitions, and how many; None = it does not.
        recreated: When it is deleted and made again, under another id and empty. Nodes notice both while they run.
        requests_grown: When the requests topic gets some, of which nothing is read before the map follows.
        map_follows: How long after that it does; None = not while the world lasts.
        source_recreated: When the topic of the world's source, if it has one, is deleted and made again.
        requests_recreated: When the requests topic is, and how long after that the map follows; set by a trap (`topic_scenarios.py`).
        open_transactions: Topics (`requests`, `events`, `source`), and when a user's transaction is open there: no reader gets a record that
            came since.
        metadata_lag_ms: For so long after a growth a broker may still tell the old number.
    """

    grown: tuple[int, int] | None = None
    recreated: int | None = None
    requests_grown: tuple[int, int] | None = None
    metadata_lag_ms: int = 0
    source_recreated: int | None = None
    map_follows: int | None = None
    requests_recreated: tuple[int, int] | None = None
    open_transactions: tuple[tuple[str, Period], ...] = ()


def calm_topics() -> TopicFaults:
    return TopicFaults()


def draw_topics(chance: Random, busy_ms: int) -> TopicFaults:
    def growth() -> tuple[int, int] | None:
        at, more = chance.randint(8_000, busy_ms), chance.randint(1, 3)
        return (at, more) if chance.random() < GROWN_SHARE else None

    return TopicFaults(
        grown=growth(),
        recreated=chance.randint(15_000, busy_ms) if chance.random() < RECREATED_SHARE else None,
        requests_grown=growth(),
        metadata_lag_ms=chance.choice((0, 1_000, 5_000)),
        # Drawn last: what is drawn before it stays as it is.
        source_recreated=chance.randint(15_000, busy_ms) if chance.random() < SOURCE_RECREATED_SHARE else None,
    )


def with_a_map_that_follows(faults: TopicFaults, chance: Random) -> TopicFaults:
    """Decides whether the map follows the requests topic, where that grows."""
    if faults.requests_grown is None or chance.random() >= MAP_FOLLOWS_SHARE:
        return faults
    return replace(faults, map_follows=chance.choice((0, 1_000, 6_000)))


def with_open_transactions(topics: TopicFaults, chance: Random, busy_ms: int) -> TopicFaults:
    """Draws whether users' transactions stay open, from a source of its own, which leaves the worlds without one as they were."""
    if chance.random() >= OPEN_TRANSACTION_SHARE:
        return topics
    when = period(chance, busy_ms, 10_000, 40_000)
    opened = chance.choice((("requests",), ("events",), ("requests", "events"), ("requests", "events", "source")))
    return replace(topics, open_transactions=tuple((topic, when) for topic in opened))
