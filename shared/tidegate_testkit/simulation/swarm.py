"""What a seed's world is like: its size, and which faults it knows at which rate.

Each seed draws its own mixture (swarm testing): a world in which every fault is always on hides what a single one does.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

SESSION_MS = 6_000
HALF_SESSION_MS = SESSION_MS // 2
HEARTBEAT_MS = 1_000
DRAIN_MS_MAX = 2_500
DRIFT_MS_MAX = 400
"""Below the 500 ms at which a node gives its topic partitions up (DESIGN 3)."""


@dataclass(frozen=True, slots=True)
class StoreFaults:
    """Rates per call, 0 to 1.

    Attributes:
        latency_ms: Mean.
        timeout_ms: After which a call without an answer counts as lost.
        lost_request, lost_answer: Never arrives; arrives, and nobody is told.
        late: Arrives seconds later, when its sender has given up, may be dead, or is fenced.
        duplicate: Arrives a second time, up to a minute later.
        throttled, unprocessed, unreadable: Turned away, as a whole, a batch's items, a read.
        conflicts: Two transactions that touch the same item within moments exclude each other.
        scattered_ms: A batch's items, and the items of one read, are up to this far apart.
        remembers_tokens: False is DynamoDB ten minutes later.
        page: Items of a query's page at most.
        brown_outs: Periods without any answer.
    """

    latency_ms: float
    timeout_ms: int
    lost_request: float = 0.0
    lost_answer: float = 0.0
    late: float = 0.0
    duplicate: float = 0.0
    throttled: float = 0.0
    unprocessed: float = 0.0
    unreadable: float = 0.0
    conflicts: bool = False
    scattered_ms: int = 0
    remembers_tokens: bool = True
    page: int = 1_000
    brown_outs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerFaults:
    """Attributes:
    fetch_ms: Mean delay from append to delivery.
    lost_ack: A record is there and its producer is told that it may not be.
    not_appended: It is not there and its producer is told the same.
    lost_pokes: Share of pokes that reach nobody.
    downs: Periods (from, to) without broker and coordinator, relative to the start.
    refusals: Periods in which the topic `sink-b` takes nothing.
    """

    fetch_ms: float
    lost_ack: float = 0.0
    not_appended: float = 0.0
    lost_pokes: float = 0.0
    downs: tuple[tuple[int, int], ...] = ()
    refusals: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NodeFaults:
    """Attributes:
    trouble: (instant, kind, length) in order: `crash`, `pause`, `drain`.
    drift_ms: Largest deviation of a node's clock.
    steps: Whether clocks step while running.
    late_loss_ms: Delay of the news that membership was lost.
    """

    trouble: tuple[tuple[int, str, int], ...]
    drift_ms: int = 0
    steps: bool = False
    late_loss_ms: int = 0


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


@dataclass(frozen=True, slots=True)
class Swarm:
    """One seed's world."""

    nodes: int
    topic_partitions: int
    event_topic_partitions: int
    shards: int
    busy_ms: int
    store: StoreFaults
    broker: BrokerFaults
    node: NodeFaults
    launcher: LauncherFaults


def swarm_of(chance: Random, *, faults: bool = True) -> Swarm:
    """Draws a world; without faults it is one in which everything works."""
    topic_partitions = chance.randint(3, 8)
    busy_ms = chance.randint(60, 90) * 1_000
    nodes = chance.randint(3, 4)
    size = (nodes, topic_partitions, chance.randint(2, 6), chance.randint(max(8, topic_partitions), 16), busy_ms)
    if not faults:
        calm = StoreFaults(latency_ms=4, timeout_ms=500)
        return Swarm(*size, calm, BrokerFaults(fetch_ms=5), NodeFaults(()), LauncherFaults())
    return Swarm(*size, _store(chance, busy_ms), _broker(chance, busy_ms), _nodes(chance, busy_ms), _launcher(chance))


def _rate(chance: Random, most: float) -> float:
    """Off in half of the worlds, else spread over three orders of two."""
    return most * 2.0 ** -chance.uniform(0, 3) if chance.random() < 0.5 else 0.0


def _store(chance: Random, busy_ms: int) -> StoreFaults:
    brown_outs = tuple(_period(chance, busy_ms, 1_000, 12_000) for _ in range(chance.choice((0, 0, 1, 1, 2))))
    return StoreFaults(
        latency_ms=chance.choice((2, 4, 8, 20)),
        timeout_ms=chance.choice((300, 1_000, 2_000)),
        lost_request=_rate(chance, 0.04),
        lost_answer=_rate(chance, 0.04),
        late=_rate(chance, 0.03),
        duplicate=_rate(chance, 0.05),
        throttled=_rate(chance, 0.05),
        unprocessed=_rate(chance, 0.3),
        unreadable=_rate(chance, 0.03),
        conflicts=chance.random() < 0.7,
        scattered_ms=chance.choice((0, 5, 100, 1_500)),
        remembers_tokens=chance.random() < 0.5,
        page=chance.choice((1_000, 1_000, 5, 2)),
        brown_outs=brown_outs,
    )


def _broker(chance: Random, busy_ms: int) -> BrokerFaults:
    return BrokerFaults(
        fetch_ms=chance.choice((3, 10, 40, 150)),
        lost_ack=_rate(chance, 0.08),
        not_appended=_rate(chance, 0.08),
        lost_pokes=chance.choice((0.0, 0.1, 0.5, 1.0)),
        downs=tuple(_period(chance, busy_ms, 500, 15_000) for _ in range(chance.choice((0, 0, 0, 1)))),
        refusals=tuple(_period(chance, busy_ms, 2_000, 20_000) for _ in range(chance.choice((0, 1)))),
    )


def _nodes(chance: Random, busy_ms: int) -> NodeFaults:
    trouble: list[tuple[int, str, int]] = []
    # One in each half of the time is of the kind that always makes others take over.
    for begin, end in ((5_000, busy_ms // 2 - 5_000), (busy_ms // 2 + 5_000, busy_ms)):
        trouble.append((chance.randint(begin, end), chance.choice(("crash", "drain")), chance.randint(200, 9_000)))
    for _ in range(chance.randint(1, 4)):
        kind = chance.choice(("crash", "crash", "pause", "pause", "drain"))
        length = chance.choice((1_500, 5_000, 7_000, 12_000, 18_000)) if kind == "pause" else chance.randint(200, 9_000)
        trouble.append((chance.randint(4_000, busy_ms), kind, length))
    return NodeFaults(
        trouble=tuple(sorted(trouble)),
        drift_ms=chance.choice((0, 100, DRIFT_MS_MAX)),
        steps=chance.random() < 0.3,
        late_loss_ms=chance.choice((0, 0, 500, 3_000)),
    )


def _launcher(chance: Random) -> LauncherFaults:
    return LauncherFaults(
        unique_names=chance.random() < 0.5,
        lost_answer=_rate(chance, 0.2),
        refused=_rate(chance, 0.1),
        slow_start_ms=chance.choice((100, 1_000, 8_000, 20_000)),
        early_death=_rate(chance, 0.15),
        silent_death=_rate(chance, 0.15),
        lost_calls=_rate(chance, 0.3),
        unknown=_rate(chance, 0.3),
    )


def _period(chance: Random, busy_ms: int, shortest: int, longest: int) -> tuple[int, int]:
    begin = chance.randint(3_000, busy_ms)
    return begin, begin + chance.randint(shortest, longest)
