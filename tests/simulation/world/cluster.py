"""What everybody in the world shares: time, store, broker, coordinator, launcher, and who is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.runner.swarm import Swarm
from tests.simulation.runner.trace import Trace
from tests.simulation.world.broker import Broker
from tests.simulation.world.classic_coordinator import Coordinator
from tests.simulation.world.kip848_coordinator import ConsumerCoordinator
from tests.simulation.world.observations import Record
from tests.simulation.world.store import SimStore
from tests.simulation.world.timeline import Timeline
from tidegate_core.engine.actor_inputs import Woken
from tidegate_core.writes.partition_map import Cut

if TYPE_CHECKING:
    from tests.simulation.users.misbehaving_programs import Stubborn
    from tests.simulation.world.launcher import Launcher
    from tests.simulation.world.node import Node

CLUSTER_ID = "simulated"
REQUESTS, EVENTS, RECEIPTS, RUNS = "tidegate.requests", "tidegate.events", "tidegate.receipts", "tidegate.runs"
REQUESTS_DLQ, EVENTS_DLQ, RUNS_DLQ = "tidegate.requests.dlq", "tidegate.events.dlq", "tidegate.runs.dlq"
SOURCE_TOPIC = "lake.landed"
"""Of the users' own; worlds that have a source have it."""
POKE_MS = 6


@dataclass(slots=True)
class Cluster:
    """Attributes:
    nodes: By name; the present life of each.
    record: What can be seen from outside.
    raises: Whether what an actor raises ends the simulation at once, for debugging.
    losses: Members that the group lost and that had served: what they held was then served by another owner.
    maps: As the item MAP has them; the last one is in force.
    superseded: When the map after it was written, by version.
    stubborn: Draws what launchers and programs do not do as they are told; None in worlds in which they do.
    """

    timeline: Timeline
    trace: Trace
    swarm: Swarm
    store: SimStore
    broker: Broker
    coordinator: Coordinator | ConsumerCoordinator
    record: Record
    nodes: dict[str, Node] = field(default_factory=dict)
    healed: bool = False
    raises: bool = False
    losses: set[str] = field(default_factory=set)
    maps: list[Cut] = field(default_factory=list)
    superseded: dict[int, int] = field(default_factory=dict)
    stubborn: Stubborn | None = None
    _launcher: Launcher | None = None
    _served_by: dict[int, tuple[str, str]] = field(default_factory=dict)

    @property
    def launcher(self) -> Launcher:
        assert self._launcher is not None
        return self._launcher

    @launcher.setter
    def launcher(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def serves(self, topic_partition: int, node: Node) -> None:
        """A node has recovered a topic partition: notes whether it took over from one that the group has lost."""
        owner, member = self._served_by.get(topic_partition, (node.owner, ""))
        self._served_by[topic_partition] = (node.owner, node.member.id)
        if owner != node.owner and not self.coordinator.has(member):
            self.losses.add(member)

    def poke(self, shard: int, run_id: str | None, *, controls: bool = False) -> None:
        """Reaches whoever believes to hold the shard, or nobody."""
        if not self.healed and self.timeline.happens(self.swarm.broker.lost_pokes):
            self.trace.bit("lost_poke", "poke")
            return
        self.timeline.after(self.timeline.around(POKE_MS), lambda: self._poked(Woken(shard, run_id, controls)))

    def _poked(self, poke: Woken) -> None:
        for node in list(self.nodes.values()):
            self._tell(node, poke)

    def _tell(self, node: Node, poke: Woken) -> None:
        node.process.post(lambda: node.poked(poke))
