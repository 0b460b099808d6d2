"""What a seed's world is like: its size, its load, and which faults it knows at which rate."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_testkit.simulation.faults.broker import BrokerFaults
from tidegate_testkit.simulation.faults.group import GroupFaults
from tidegate_testkit.simulation.faults.knobs import Knob
from tidegate_testkit.simulation.faults.launcher import LauncherFaults
from tidegate_testkit.simulation.faults.node import NodeFaults
from tidegate_testkit.simulation.faults.store import StoreFaults
from tidegate_testkit.simulation.faults.topics import TopicFaults
from tidegate_testkit.simulation.faults.upgrade import Upgrade

SESSION_MS = 6_000
HALF_SESSION_MS = SESSION_MS // 2
CONSUMER_SESSION_MS = 12_000
"""The broker's, with KIP-848: longer than what the nodes' setting says, as by default (45 s and 6 s)."""
SETTLE_MS = 6_000
"""With KIP-848: after a freeze a probe counts only when it was sent so long after it."""
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
        crowd: Further schedules that share one program's limit.
        traps: Names of the traps that are in it (`faults/traps.py`).
        knobs: Limits of production that are small in it (`faults/knobs.py`).
        upgrade: How its nodes are rolled to another release; None: they are all of this one.
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
    group: GroupFaults
    topics: TopicFaults
    knobs: tuple[Knob, ...] = ()
    bursts: tuple[Burst, ...] = ()
    crowd: int = 0
    traps: tuple[str, ...] = ()
    upgrade: Upgrade | None = None
