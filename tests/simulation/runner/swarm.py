"""What a seed's world is like: its size, its load, and which faults it knows at which rate."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.faults.broker_faults import BrokerFaults
from tests.simulation.faults.group_faults import GroupFaults
from tests.simulation.faults.launcher_faults import LauncherFaults
from tests.simulation.faults.node_faults import NodeFaults
from tests.simulation.faults.small_limits import Knob
from tests.simulation.faults.store_faults import StoreFaults
from tests.simulation.faults.topic_faults import TopicFaults
from tests.simulation.faults.upgrade_faults import Upgrade

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
        traps: Names of the traps that are in it (`faults/scenarios.py`).
        knobs: Limits of production that are small in it (`faults/small_limits.py`).
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
