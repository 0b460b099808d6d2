"""What this process writes on its card: its own standing, as health knows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import version

from tidegate_core.language.time.zones import TZDATA_VERSION
from tidegate_core.rows.node_status import NodeStatus
from tidegate_core.rows.schema_version import NEWEST
from tidegate_node.liveness.health_server import Standing
from tidegate_node.liveness.heartbeat_loop import HeartbeatLoop
from tidegate_node.node_identity import NodeFacts
from tidegate_ports.clock import Clock


class NodeStatusBuilder:
    """One per process."""

    def __init__(
        self,
        facts: NodeFacts,
        standing: Callable[[], Standing],
        shards: Callable[[Iterable[int]], int],
        writes: Callable[[], int],
        heartbeats: HeartbeatLoop,
        clock: Clock,
    ) -> None:
        self._facts = facts
        self._standing = standing
        self._shards = shards
        self._writes = writes
        self._heartbeats = heartbeats
        self._clock = clock
        self._started_at = clock.now_ms()

    def __call__(self) -> NodeStatus:
        standing = self._standing()
        return NodeStatus(
            owner=self._facts.owner,
            node=self._facts.name,
            version=version("tidegate"),
            tzdata=TZDATA_VERSION,
            started_at=self._started_at,
            seen=self._clock.now_ms(),
            clock_offset_ms=self._heartbeats.clock_offset_ms,
            held=tuple(sorted(standing.held)),
            serving=tuple(sorted(standing.serving)),
            shards=self._shards(standing.held),
            unready=tuple(standing.why_unready()),
            drained=standing.drained,
            reads=NEWEST,
            writes=self._writes(),
            findings=standing.broken,
        )
