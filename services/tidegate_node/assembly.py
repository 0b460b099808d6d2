"""Assembles a node from ready adapters: effects, assignments, drivers, heartbeats and health. It knows ports, but no
adapter.

Called by `bootstrap.py`. Assignments, Kafka clients and drivers refer to each other. So the assignments are built
first, then the clients that report to them, then the parts that connect both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from tidegate_core.engine.actor_inputs import Assignment
from tidegate_core.engine.membership_lease import MapLease
from tidegate_core.shard.events.subscription_index import SubscriptionIndex
from tidegate_node.assigned_partitions import AssignedPartitions
from tidegate_node.effects.bus_effects import BusEffects
from tidegate_node.effects.effect_router import EffectRouter
from tidegate_node.effects.launch_effects import LaunchEffects
from tidegate_node.effects.run_folder_retention import RunFolderRetention
from tidegate_node.effects.store_effects import StoreEffects
from tidegate_node.liveness.health_server import HealthServer
from tidegate_node.liveness.heartbeat_loop import HeartbeatLoop
from tidegate_node.liveness.node_status import NodeStatusBuilder, NodeStatusWriter
from tidegate_node.liveness.overload import Limits
from tidegate_node.liveness.watchdog_loop import WatchdogLoop
from tidegate_node.load.load_effects import LoadEffects
from tidegate_node.node import Member, Node, Parts, Startable
from tidegate_node.node_identity import NodeFacts
from tidegate_node.partition_driver import DriverEvents, PartitionDriver, partition_actor
from tidegate_node.settings import NodeSettings
from tidegate_node.startup_checks import StartRefused
from tidegate_node.topics.lost_offsets import LostOffsets
from tidegate_node.topics.offset_gaps import LogGaps
from tidegate_node.topics.partition_map_watch import MapWatch
from tidegate_node.topics.stalled_reader_watch import ReadingWatch
from tidegate_ports.bus import Notices, PartitionReader, Publisher, RecordFinder, Topics
from tidegate_ports.clock import Clock
from tidegate_ports.launcher import Launcher
from tidegate_ports.load_sampler import LoadSampler
from tidegate_ports.run_folders import RunFolders
from tidegate_telemetry.metrics import Metrics
from tidegate_telemetry.open_transactions import Followed, OpenTransactions


class Reader(Startable, PartitionReader, Protocol):
    """Reads events and wake-ups."""


class Producer(Startable, Publisher, Protocol):
    """Sends records."""


@dataclass(frozen=True, slots=True)
class Clients:
    """Kafka clients of one node; `start` starts a thread for each.

    Attributes:
        guarded: Producer that sends only while membership is proven.
    """

    membership: Member
    reader: Reader
    guarded: Producer
    plain: Producer


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Parts and settings that a node gets from outside."""

    settings: NodeSettings
    facts: NodeFacts
    secret: bytes
    store: StoreEffects
    topics: Topics
    finder: RecordFinder
    clients: Callable[[AssignedPartitions], Clients]
    launcher: Launcher
    run_folders: RunFolders
    loads: Mapping[str, LoadSampler]
    clock: Clock
    metrics: Metrics
    notices: Notices


def assemble(around: Surroundings) -> Node:
    """Builds a node on the running loop; no part acts before the node runs.

    Raises:
        StartRefused: The address of the health pages is taken.
    """
    facts, clock, metrics, notices = around.facts, around.clock, around.metrics, around.notices
    loop = asyncio.get_running_loop()
    holdings = AssignedPartitions(facts, LostOffsets(facts, around.topics, metrics, notices), clock, notices, loop)
    clients = around.clients(holdings)
    gaps = LogGaps(around.finder, clock)
    map_guard = MapLease()
    router = _router(around, clients, holdings, gaps, map_guard)
    node = Node(
        Parts(
            facts,
            holdings,
            clients.membership,
            clients.reader,
            clients.guarded,
            clients.plain,
            map_guard,
            router.launch,
            clock,
            metrics,
            notices,
        )
    )
    heartbeats = _heartbeats(around, clients, node, holdings)
    drivers = DriverMaker(facts, router, node, loop)
    holdings.connect(drivers, clients.reader, heartbeats)
    node.connect(heartbeats, _health(around.settings, node, metrics))
    card = NodeStatusBuilder(facts, node.standing, holdings.shards, holdings.writes, heartbeats, clock)
    watching = WatchdogLoop(facts, around.store, around.topics, gaps, clock, metrics, notices)
    node.attend(
        NodeStatusWriter(facts.owner, around.store, notices, card, node.drain, holdings.migrated, node.outdated),
        watching,
        MapWatch(facts, holdings, map_guard, around.store, around.topics, clock, notices),
        ReadingWatch(facts, clients.membership, clients.reader, around.topics, gaps, notices),
        RunFolderRetention(around.run_folders, lambda: around.store.answered_at_ms, clock, metrics, notices),
        OpenTransactions(
            partial(_followed, facts, clients.reader),
            # A node reads a topic partition of any topic if it owns the number modulo the map's count of topic
            # partitions.
            lambda number: number % facts.cluster.topic_partitions in clients.membership.owned(),
            around.topics,
            around.finder,
            clock,
            metrics,
            notices,
        ),
    )
    return node


def _router(
    around: Surroundings, clients: Clients, holdings: AssignedPartitions, gaps: LogGaps, map_guard: MapLease
) -> EffectRouter:
    """Builds the router that carries effects out."""
    facts, clock, metrics, notices = around.facts, around.clock, around.metrics, around.notices
    launch = LaunchEffects(
        around.launcher,
        gate_url=around.settings.gate.url,
        secret=around.secret,
        clock=clock,
        metrics=metrics,
        notices=notices,
    )
    bus = BusEffects(
        facts,
        membership=clients.membership,
        reader=clients.reader,
        guarded=clients.guarded,
        plain=clients.plain,
        topics=around.topics,
        gaps=gaps,
        standing_still=holdings.standing_still,
        poke_here=holdings.poke,
        clock=clock,
        metrics=metrics,
        notices=notices,
    )
    load = LoadEffects(around.loads, clock, metrics)
    return EffectRouter(around.store, bus, launch, load, clock, notices, clients.membership, map_guard)


def _heartbeats(around: Surroundings, clients: Clients, node: Node, holdings: AssignedPartitions) -> HeartbeatLoop:
    overload = around.settings.overload
    return HeartbeatLoop(
        around.facts,
        store=around.store,
        plain=clients.plain,
        clock=around.clock,
        metrics=around.metrics,
        notices=around.notices,
        act=node.act,
        served=holdings.served,
        takes=lambda: node.takes,
        limits=Limits(overload.lag_ms, overload.after_ms, overload.back_ms),
    )


def _followed(facts: NodeFacts, reader: PartitionReader) -> list[Followed]:
    """Returns the requests topic and all topics that are read now."""
    own = {facts.requests.name, facts.events.name, facts.pokes.name}
    read = {facts.requests.name: facts.requests.id} | {topic.name: topic.id for topic in reader.being_read()}
    return [Followed(name, topic_id, name in own) for name, topic_id in read.items()]


def _health(settings: NodeSettings, node: Node, metrics: Metrics) -> HealthServer:
    host, port = settings.health.host, settings.health.port
    try:
        return HealthServer(host, port, node.standing, node.refresh, metrics)
    except OSError as taken:
        raise StartRefused(f"health.host and health.port: cannot listen on {host}:{port}: {taken.strerror}") from taken


class DriverMaker:
    """Creates drivers. Each actor that they build has a unique tenure, so that no token repeats."""

    def __init__(self, facts: NodeFacts, shell: EffectRouter, node: Node, loop: asyncio.AbstractEventLoop) -> None:
        self._facts = facts
        self._shell = shell
        self._events = DriverEvents(node.actor_failed, node.actor_ended)
        self._loop = loop
        self._index = SubscriptionIndex()
        self._tenures = 0

    def __call__(self, topic_partition: int) -> PartitionDriver:
        make = partition_actor(partial(self._holding, topic_partition), self._index)
        return PartitionDriver(topic_partition, make, self._shell, self._events, self._loop)

    def _holding(self, topic_partition: int) -> Assignment:
        self._tenures += 1
        return self._facts.holding(topic_partition, self._tenures)
