"""What a seed's world is like: its size, its load, and which faults it knows at which rate."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_testkit.simulation.faults.broker import BrokerFaults
from tidegate_testkit.simulation.faults.launcher import LauncherFaults
from tidegate_testkit.simulation.faults.node import NodeFaults
from tidegate_testkit.simulation.faults.store import StoreFaults

SESSION_MS = 6_000
HALF_SESSION_MS = SESSION_MS // 2
HEARTBEAT_MS = 1_000
DRAIN_MS_MAX = 2_500


@dataclass(frozen=True, slots=True)
class Burst:
    """Further messages of about the same time, beside those that each world has.

    Attributes:
        count: Messages.
        sent: From and to, milliseconds after the start.
        due: Likewise.
        in_shard: All of them in this one, or in any.
    """

    count: int
    sent: tuple[int, int]
    due: tuple[int, int]
    in_shard: int | None = None


@dataclass(frozen=True, slots=True)
class Swarm:
    """One seed's world.

    Attributes:
        busy_ms: How long users, producers and faults are at work; then all faults end, and the world comes to rest.
        traps: Names of the traps that are in it (`faults/traps.py`).
    """

    nodes: int
    topic_partitions: int
    event_topic_partitions: int
    shards: int
    busy_ms: int
    store: StoreFaults
    broker: BrokerFaults
    node: NodeFaults
    launcher: LauncherFaults
    bursts: tuple[Burst, ...] = ()
    traps: tuple[str, ...] = ()
