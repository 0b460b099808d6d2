"""A node's holding of one ownership topic partition: drives its actor as the node's driver does, and holds no rule of its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.users.recurring_messages import NEAR_MS
from tests.simulation.world import cluster as world
from tests.simulation.world.effect_executor import Carrier
from tests.simulation.world.observations import Stint
from tidegate_core.engine.actor_inputs import Assignment, Begin, Drain, Input, RecordsArrived, Tick
from tidegate_core.ownership.partition_actor import PartitionActor
from tidegate_core.rows import keys
from tidegate_core.rows.effects import EffectResult, Result
from tidegate_core.rows.schema_version import FIRST, NEWEST

if TYPE_CHECKING:
    from tests.simulation.world.node import Node

MINIMUM_PERIOD_MS = 1_000


class Tenure:
    """From the assignment of the topic partition to its loss.

    Attributes:
        stint: The present one; an actor that was fenced starts again with another one.
        drained: Whether the actor has said that it handed over.
        map: Under which it holds.
    """

    def __init__(self, node: Node, topic_partition: int, number: int) -> None:
        self.node = node
        self.topic_partition = topic_partition
        self.map = node.maps[-1]
        self.name = f"{node.name}/{node.owner[:6]}/{topic_partition}.{number}"
        self._number = number
        self.drained = self._draining = False
        self.alive = True
        self.stint = self._begin_stint(0)
        self.actor = PartitionActor(_holding(node, topic_partition, number), node.index)
        self._carrier = Carrier(self)
        self._tick_at: int | None = None
        self._drain_repeats_nothing = False

    # -- life ---------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.node.cluster.trace.note(self.name, "assigned")
        self.take(Begin())

    def drain(self) -> None:
        if self._draining:
            return  # Twice where the group takes it amid a change of the map.
        self._draining = True
        # Without the guard what is due can not be sent, and no checkpoint passes it, nor what was sent behind it.
        self._drain_repeats_nothing = self.may_act()
        self.take(Drain())

    def drop(self, why: str) -> None:
        """Nothing reaches the actor any more; what it has sent is on its way all the same."""
        if not self.alive:
            return
        self.alive = False
        self.node.note_served(self)
        self._carrier.stop_reading()
        self.node.cluster.trace.note(self.name, "dropped", why, "drained" if self.drained else "")
        self._end_stint(orderly=self.drained and self._drain_repeats_nothing)

    def may_act(self) -> bool:
        """As the node's shell says. Its map was read right now, or right before the next one was written: nobody goes by it for longer."""
        now, version = self.node.cluster.timeline.now, self.map.version
        self.node.map_guard.read(version, self.node.cluster.superseded.get(version, now))
        return self.node.guard_holds() and self.node.map_guard.holds(version, now)

    def serves(self) -> None:
        """The actor says that it has recovered."""
        self.stint.serving = self.node.cluster.timeline.now
        self.node.cluster.serves(self.topic_partition, self.node)

    def reads(self, topic: str) -> None:
        """The actor says that it reads one more topic partition of a topic that has events."""
        if topic == world.EVENTS and self.stint.events_from is None:
            self.stint.events_from = self.node.cluster.timeline.now

    def is_fenced(self, pk: str) -> None:
        """The actor says that another owner was there, as this partition key told it, or a newer map; it starts again."""
        holder = self.node.cluster.record.holders.get(pk)
        if holder is not None and (holder.owner, holder.tenure) == (self.node.owner, self._number):
            self.node.cluster.record.failures.append(f"I8: {self.name} was fenced at {pk} by nobody but itself")
        self._end_stint(orderly=False)
        self.stint = self._begin_stint(int(self.stint.name.rsplit(".", 1)[1]) + 1)

    def _begin_stint(self, number: int) -> Stint:
        cluster = self.node.cluster
        stint = Stint(f"{self.name}.{number}", self.topic_partition, self.node.name, cluster.timeline.now, self.map)
        cluster.record.stints[stint.name] = stint
        return stint

    def _end_stint(self, *, orderly: bool) -> None:
        self.stint.ended = self.node.cluster.timeline.now
        self.stint.orderly = orderly

    # -- inputs -------------------------------------------------------------------------------------------------------

    @property
    def takes(self) -> bool:
        """There is an actor for inputs."""
        return self.alive and not self.actor.has_ended

    def take(self, incoming: Input) -> None:
        """Gives the actor an input and carries out what it asks for."""
        if not self.takes:
            return
        if isinstance(incoming, RecordsArrived) and incoming.topic == world.REQUESTS:
            self._note_handed(incoming)
        try:
            asked = self.actor.step(self.node.clock(), incoming)
        except Exception as error:  # noqa: BLE001  # whatever an actor raises is what the simulation is there to find
            self._failed(error)
            return
        for ask in asked:
            self._carrier.carry_out(ask)
        self._plan_tick()

    def answer(self, token: int, result: Result) -> None:
        if token:
            self.take(EffectResult(token, result))

    def _note_handed(self, arrived: RecordsArrived) -> None:
        cluster = self.node.cluster
        pk = keys.topic_position(world.CLUSTER_ID, arrived.topic_id, arrived.topic_partition).pk
        for record in arrived.records:
            cluster.record.handed[pk, record.offset].append((cluster.timeline.now, self.node.owner, self._number))

    def _failed(self, error: Exception) -> None:
        cluster = self.node.cluster
        cluster.record.failures.append(f"{self.name} raised {error!r}")
        cluster.trace.note(self.name, "raised", repr(error))
        if cluster.raises:
            raise error
        self.drop("raised")

    def _plan_tick(self) -> None:
        wake = self.actor.next_wake()
        if wake is None:
            return
        timeline = self.node.cluster.timeline
        at = max(timeline.now + 1, wake - self.node.offset_ms)
        if self._tick_at is None or at < self._tick_at or self._tick_at <= timeline.now:
            self._tick_at = at
            self.node.process.after(at - timeline.now, partial(self._tick, at))

    def _tick(self, planned: int) -> None:
        if self._tick_at == planned:
            self._tick_at = None
            self.take(Tick())


def _holding(node: Node, topic_partition: int, number: int) -> Assignment:
    cluster = node.cluster
    return Assignment(
        owner=node.owner,
        node=node.name,
        topic_partition=topic_partition,
        topic_partitions=node.maps[-1].topic_partitions,
        map_version=node.maps[-1].version,
        former_maps=node.maps[:-1],
        shards=cluster.swarm.shards,
        cluster_id=world.CLUSTER_ID,
        requests=node.requests,
        events_topic=world.EVENTS,
        receipts_topic=world.RECEIPTS,
        runs_topic=world.RUNS,
        requests_dlq_topic=world.REQUESTS_DLQ,
        events_dlq_topic=world.EVENTS_DLQ,
        runs_dlq_topic=world.RUNS_DLQ,
        minimum_period_ms=MINIMUM_PERIOD_MS,
        recurring_near_ms=NEAR_MS,
        tenure=number,
        writes=min(NEWEST if cluster.swarm.upgrade is None else FIRST, node.readable.newest),
        readable=node.readable,
    )
