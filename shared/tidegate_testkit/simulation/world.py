"""One seed's world from its first moment to rest: builds it, troubles it, heals it, waits until nothing is left to do."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from functools import partial
from typing import Final

from tidegate_core.decisions.inputs import LogRecord
from tidegate_testkit.simulation import cluster as parts
from tidegate_testkit.simulation.broker import Broker
from tidegate_testkit.simulation.cluster import Cluster
from tidegate_testkit.simulation.definitions import draw
from tidegate_testkit.simulation.events import Producers
from tidegate_testkit.simulation.group import Coordinator
from tidegate_testkit.simulation.launcher import Launcher
from tidegate_testkit.simulation.messages import SINKS, Senders
from tidegate_testkit.simulation.monitor import StoreMonitor
from tidegate_testkit.simulation.node import Node
from tidegate_testkit.simulation.record import Record
from tidegate_testkit.simulation.requests import Requests
from tidegate_testkit.simulation.schedules import ScheduleUser, draw_users
from tidegate_testkit.simulation.store import SimStore
from tidegate_testkit.simulation.swarm import Swarm, swarm_of
from tidegate_testkit.simulation.timeline import START, Timeline
from tidegate_testkit.simulation.trace import Trace

HEAL_AFTER_MS: Final = 2_000
REST_MS_MAX: Final = 300_000
"""A healed world comes to rest within this, or something is stuck."""
LOOK_MS: Final = 1_000
OPEN_KINDS: Final = ("I#", "J#", "R#", "Z#")
"""Rows that are work to be done."""


@dataclass(slots=True)
class World:
    """Everything of one seed, for the checks.

    Attributes:
        ended_at: True time at which the world was at rest, or was given up.
        at_rest: Whether it came to rest.
    """

    seed: int
    cluster: Cluster
    requests: Requests
    users: list[ScheduleUser]
    producers: Producers
    senders: Senders
    at_rest: bool = False
    ended_at: int = 0

    @property
    def trace(self) -> Trace:
        return self.cluster.trace


def build(
    seed: int, *, faults: bool = True, whole_trace: bool = False, hashed: bool = False, swarm: Swarm | None = None
) -> World:
    """Returns the world of a seed, with everything planned and nothing happened yet."""
    timeline = Timeline(seed)
    drawn = swarm or swarm_of(timeline.chance, faults=faults)
    trace = Trace(timeline, whole=whole_trace, hashed=hashed)
    record = Record()
    broker = Broker(timeline, trace, drawn.broker)
    store = SimStore(timeline, trace, drawn.store)
    coordinator = Coordinator(timeline, trace, drawn.topic_partitions, broker.is_down)
    cluster = Cluster(timeline, trace, drawn, store, broker, coordinator, record)
    cluster.launcher = Launcher(cluster)
    StoreMonitor(store, record)
    requests, producers = Requests(cluster), Producers(cluster)
    senders = Senders(cluster, requests)
    _create_topics(cluster, requests, producers, senders)
    trace.note("world", "swarm", drawn)
    users = draw_users(cluster, requests, draw(timeline.chance, START, drawn.busy_ms))
    producers.plan(drawn.busy_ms)
    senders.plan(drawn.busy_ms)
    world = World(seed, cluster, requests, users, producers, senders)
    _Troubles(world).plan()
    return world


def _create_topics(cluster: Cluster, requests: Requests, producers: Producers, senders: Senders) -> None:
    def requested(topic_partition: int, appended: LogRecord) -> None:
        requests.request_appended(topic_partition, appended)
        senders.request_appended(topic_partition, appended)

    def buried(topic_partition: int, appended: LogRecord) -> None:
        cluster.record.dead_letters.append(appended)

    create, drawn = cluster.broker.create, cluster.swarm
    create(parts.REQUESTS, drawn.topic_partitions, requested)
    create(parts.EVENTS, drawn.event_topic_partitions, producers.event_appended)
    create(parts.RECEIPTS, 2, requests.receipt_appended)
    create(parts.RUNS, 2)
    create(parts.REQUESTS_DLQ, 2, buried)
    create(parts.EVENTS_DLQ, 2, buried)
    for sink in SINKS:
        create(sink, 2, senders.delivered)


class _Troubles:
    """Starts the nodes, and crashes, freezes and restarts them as the swarm says."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cluster = world.cluster
        self._timeline = world.cluster.timeline
        self._healed = False

    def plan(self) -> None:
        swarm = self._cluster.swarm
        for number in range(swarm.nodes):
            name = f"node{number}"
            self._timeline.after(self._timeline.between(0, 800), partial(self._start, name))
        for instant, kind, length in swarm.node.trouble:
            self._timeline.after(instant, partial(self._trouble, kind, length))
        for _down_from, down_to in swarm.broker.downs:
            self._timeline.after(down_to + 1, self._cluster.coordinator.forgive)
        for _ in range(self._timeline.chance.randint(0, 3)):
            self._timeline.after(self._timeline.between(3_000, swarm.busy_ms), self._cancel_a_run)
        if swarm.node.steps:
            for _ in range(6):
                self._timeline.after(self._timeline.between(3_000, swarm.busy_ms), self._step_a_clock)
        self._timeline.after(swarm.busy_ms + HEAL_AFTER_MS, self._heal)

    def _start(self, name: str) -> None:
        present = self._cluster.nodes.get(name)
        if present is not None and present.process.alive:
            return
        chance = self._timeline.chance
        drift = self._cluster.swarm.node.drift_ms
        owner = f"{chance.getrandbits(128):032x}"
        node = Node(self._cluster, name, owner, chance.randint(-drift, drift))
        self._cluster.nodes[name] = node
        node.start()

    def _trouble(self, kind: str, length: int) -> None:
        if self._healed:
            return
        able = [node for node in self._cluster.nodes.values() if node.process.alive and not node.process.paused]
        if not able:
            return
        node = self._timeline.chance.choice([each for each in able if each.tenures] or able)
        if kind == "crash":
            node.crash()
            self._timeline.after(length, lambda: self._start(node.name))
        elif kind == "drain":
            node.drain_and_leave()
            self._timeline.after(4_000 + length, lambda: self._start(node.name))
        else:
            self._cluster.trace.bit("pause", "beyond session" if length > 6_000 else "within session")
            node.process.pause()
            self._timeline.after(length, lambda: self._go_on(node))

    def _go_on(self, node: Node) -> None:
        if node.process.paused:
            self._cluster.trace.note(node.name, "goes on")
            node.process.go_on()

    def _cancel_a_run(self) -> None:
        """Somebody ends a program that is running."""
        running = [body.run_id for body in self._cluster.record.bodies if body.end is None]
        if running:
            run_id = self._timeline.chance.choice(running)
            self._world.requests.ask({"type": "run.cancel", "run_id": run_id}, lambda asked: None)

    def _step_a_clock(self) -> None:
        drift = self._cluster.swarm.node.drift_ms
        nodes = [node for node in self._cluster.nodes.values() if node.process.alive]
        if nodes and not self._healed:
            self._cluster.trace.bit("clock_step", "node")
            self._timeline.chance.choice(nodes).offset_ms = self._timeline.chance.randint(-drift, drift)

    def _heal(self) -> None:
        self._healed = True
        cluster = self._cluster
        cluster.healed = True
        cluster.store.heal()
        cluster.broker.heal()
        cluster.coordinator.forgive()
        cluster.trace.note("world", "healed")
        for node in list(cluster.nodes.values()):
            self._go_on(node)
            self._start(node.name)
        for user in self._world.users:
            user.close()


def run(world: World) -> World:
    """Runs a world until it is at rest, or the hard cap is reached."""
    # Thousands of short-lived objects and hardly a cycle among them: the collector would cost a tenth of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        _run(world)
    finally:
        if was_enabled:
            gc.enable()
    return world


def _run(world: World) -> None:
    timeline, swarm = world.cluster.timeline, world.cluster.swarm
    timeline.run(START + swarm.busy_ms + HEAL_AFTER_MS)
    last = timeline.now + REST_MS_MAX
    quiet_since: int | None = None
    while timeline.now < last:
        timeline.run(timeline.now + LOOK_MS)
        if open_work(world):
            quiet_since = None
            continue
        quiet_since = timeline.now if quiet_since is None else quiet_since
        # Late and duplicated writes are still to come, up to a minute later: they must find nothing to change.
        if timeline.now - quiet_since >= 8_000:
            world.at_rest = True
            break
    world.ended_at = timeline.now


def open_work(world: World) -> list[str]:
    """Returns what is still to be done, in words."""
    cluster = world.cluster
    now = cluster.timeline.now
    found = [f"request {each} has no receipt" for each in world.requests.unanswered()]
    found += [f"user of {user.life.name} waits" for user in world.users if not user.is_done]
    last_due = max((letter.due for letter in world.senders.letters.values()), default=0)
    if last_due + 2_000 > now:
        found.append("messages are not due yet")
    if found:
        return found
    for item in cluster.store.memory.items():
        sk = str(item["sk"])
        if sk.startswith(OPEN_KINDS):
            found.append(f"{item['pk']!s} {sk}")
        elif sk == "LIMIT" and item.get("in_use"):
            found.append(f"{item['pk']!s} is in use")
    found += _unread(cluster)
    return found


def _unread(cluster: Cluster) -> list[str]:
    """Returns topic partitions whose position is not at the end of the log."""
    from tidegate_core.store import keys

    found: list[str] = []
    for name in (parts.REQUESTS, parts.EVENTS):
        topic = cluster.broker.topics[name]
        for number, log in enumerate(topic.logs):
            position = cluster.store.memory.peek(keys.topic_position(parts.CLUSTER_ID, topic.id, number))
            if log and (position is None or position["next"] != len(log)):
                read = 0 if position is None else position["next"]
                found.append(f"{name} {number} is read up to {read!s} of {len(log)}")
    return found
