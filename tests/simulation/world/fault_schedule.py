"""Starts the nodes, and crashes, freezes, restarts them as the swarm says; in the end all faults stop."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tests.simulation.faults.node_faults import Trouble
from tests.simulation.runner.fault_coverage import moment_of
from tests.simulation.runner.world_drawing import source
from tests.simulation.users.absence_schedules import nobody_until
from tests.simulation.users.schedule_definitions import FAILURES
from tests.simulation.world.cluster import EVENTS, REQUESTS, SOURCE_TOPIC
from tests.simulation.world.node import Node
from tests.simulation.world.rolling_upgrade import Upgrading
from tidegate_core.rows.store_operations import Transaction, Update
from tidegate_core.writes.partition_map import Cut

if TYPE_CHECKING:
    from tests.simulation.world.world import World

HEAL_AFTER_MS: Final = 2_000
UNAWARE_MS: Final = (0, 0, 2_000, 8_000)
"""How long a reader of a topic that was made anew does not notice; 0 = it is told at once."""
MAP_READ_MS: Final = (0, 300, 700, 1_000, 1_000, 9_000)
"""How long after a map was written a node reads it; the last one is longer than others wait for it."""
STEPS: Final = 6
"""Steps of clocks in a world in which they do."""
CANCELS_MAX: Final = 6
"""Programs that somebody ends while they run, and as many jobs while they wait."""

CANCELLED_AT_ITS_END: Final = 0.7
"""Share of the programs whose failure is reported, and that somebody cancels before anybody has looked at it."""


class Troubles:
    """Plans all of it when the world is built."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cluster = world.cluster
        self._timeline = world.cluster.timeline
        self._awaited: list[Trouble] = []
        # Chance of its own: what is drawn for other troubles stays as it is.
        self._at_ends = source(world.seed, "cancels at the end")
        world.cluster.store.on_taken_effect = self._taken_effect

    def plan(self) -> None:
        swarm, after = self._cluster.swarm, self._timeline.after
        for number in range(swarm.nodes):
            after(self._timeline.between(0, 800), partial(self._start, f"node{number}"))
        for trouble in swarm.node.trouble:
            after(trouble.at, partial(self._come, trouble))
        self._plan_topics()
        for begin, end in swarm.node.black_outs:
            after(begin, self._black_out)
            after(end, self._all_back)
        for _down_from, down_to in swarm.broker.downs:
            after(down_to + 1, self._cluster.coordinator.forgive)
        for _ in range(self._timeline.chance.randint(0, CANCELS_MAX)):
            after(self._timeline.between(3_000, swarm.busy_ms), self._cancel_a_run)
            after(self._timeline.between(3_000, swarm.busy_ms), self._cancel_a_job)
        for _ in range(STEPS if swarm.node.steps else 0):
            after(self._timeline.between(3_000, swarm.busy_ms), self._step_a_clock)
        Upgrading(self._cluster, self._start, self._befall).plan()
        after(swarm.busy_ms + HEAL_AFTER_MS, self._heal)

    def _start(self, name: str) -> None:
        present = self._cluster.nodes.get(name)
        if present is not None and present.process.alive:
            return
        until = nobody_until(self._cluster.swarm, self._timeline.now)
        if until is not None:
            return  # All of them come back together.
        chance = self._timeline.chance
        drift = self._cluster.swarm.node.drift_ms
        owner = f"{chance.getrandbits(128):032x}"
        node = Node(self._cluster, name, owner, chance.randint(-drift, drift))
        self._cluster.nodes[name] = node
        node.start()

    # -- what befalls a node ------------------------------------------------------------------------------------------

    def _come(self, trouble: Trouble) -> None:
        if self._cluster.healed:
            return
        if trouble.once_applied is not None:
            self._awaited.append(trouble)
            return
        able = [node for node in self._cluster.nodes.values() if node.process.alive and not node.process.paused]
        if trouble.holder_of is not None:
            able = [node for node in able if trouble.holder_of in node.tenures]
        if able:
            node = self._timeline.chance.choice([each for each in able if each.tenures] or able)
            self._befall(trouble, node, "node")

    def _taken_effect(self, transaction: Transaction) -> None:
        """The store's own moment: its sender does not know yet that it took effect."""
        if transaction.name == "finished" and FAILURES in self._cluster.swarm.traps:
            self._cancel_at_its_end(transaction)
        for trouble in [each for each in self._awaited if each.once_applied == transaction.name]:
            owner = transaction.token.split("/", 1)[0]
            for node in self._cluster.nodes.values():
                if node.owner == owner and node.process.alive and not node.process.paused:
                    self._awaited.remove(trouble)
                    self._befall(trouble, node, moment_of(transaction.name))
                    return

    def _befall(self, trouble: Trouble, node: Node, where: str) -> None:
        after, length = self._timeline.after, trouble.length
        match trouble.kind:
            case "crash":
                node.crash(where)
                after(length, lambda: self._start(node.name))
            case "drain":
                node.drain_and_leave()
                after(4_000 + length, lambda: self._start(node.name))
            case "pause":
                self._cluster.trace.bit("pause", where)
                self._cluster.record.pauses.append((node.name, self._timeline.now, self._timeline.now + length))
                node.process.pause()
                after(length, lambda: self._go_on(node))

    def _black_out(self) -> None:
        self._cluster.trace.bit("black_out", "nodes")
        for node in self._cluster.nodes.values():
            if node.process.alive:
                node.crash("black-out")

    def _all_back(self) -> None:
        for number in range(self._cluster.swarm.nodes):
            self._timeline.after(self._timeline.between(0, 3_000), partial(self._start, f"node{number}"))

    def _go_on(self, node: Node) -> None:
        if node.process.paused:
            node.go_on()

    def _step_a_clock(self) -> None:
        drift = self._cluster.swarm.node.drift_ms
        nodes = [node for node in self._cluster.nodes.values() if node.process.alive]
        if nodes and not self._cluster.healed:
            self._cluster.trace.bit("clock_step", "node")
            self._timeline.chance.choice(nodes).offset_ms = self._timeline.chance.randint(-drift, drift)

    # -- what befalls the topics --------------------------------------------------------------------------------------

    def _plan_topics(self) -> None:
        topics, after = self._cluster.swarm.topics, self._timeline.after
        if topics.grown is not None:
            at, more = topics.grown
            after(at, partial(self._cluster.broker.grow, EVENTS, more))
        if topics.recreated is not None:
            after(topics.recreated, self._recreate_events)
        if topics.source_recreated is not None and self._world.sources:
            after(topics.source_recreated, self._recreate_source)
        if topics.requests_grown is not None:
            at, more = topics.requests_grown
            grown = self._cluster.swarm.topic_partitions + more
            if topics.map_follows is not None:
                after(at, partial(self._cluster.broker.grow, REQUESTS, more))
                after(at + topics.map_follows, partial(self._map_follows, grown))
            after(at, partial(self._cluster.coordinator.grow, grown))
        if topics.requests_recreated is not None:
            at, later = topics.requests_recreated
            after(at, self._recreate_requests)
            after(at + later, self._map_follows_to_another_topic)

    def _map_follows(self, topic_partitions: int) -> None:
        """Somebody writes the next map, unless that of another topic has as many already."""
        if topic_partitions > self._cluster.maps[-1].topic_partitions:
            self._cluster.trace.bit("grown", "map")
            self._next_map(topic_partitions, self._cluster.maps[-1].topic_id, "when a map is read")

    def _map_follows_to_another_topic(self) -> None:
        topic = self._cluster.broker.topics[REQUESTS]
        self._cluster.trace.counted("map_of_another_topic", "map")
        self._next_map(len(topic.logs), topic.id, "when the map of another topic is read")

    def _next_map(self, topic_partitions: int, topic_id: str, name: str) -> None:
        """Nodes read it soon, and some of them late."""
        chance = source(self._world.seed, name)
        maps = self._cluster.maps
        self._cluster.superseded[maps[-1].version] = self._timeline.now
        maps.append(Cut(maps[-1].version + 1, topic_partitions, topic_id))
        for node in self._cluster.nodes.values():
            node.process.after(chance.choice(MAP_READ_MS), node.look_at_the_map)

    def _recreate_events(self) -> None:
        # Chance of its own: what is drawn for other troubles stays as it is.
        chance = source(self._world.seed, "unaware of another events topic")
        self._cluster.broker.recreate(EVENTS, lambda: chance.choice(UNAWARE_MS))
        self._world.producers.are_gone(by_source=False)

    def _recreate_requests(self) -> None:
        """What lies unread in the old one is found by the position that was never moved behind it (`Case.is_gone`)."""
        chance = source(self._world.seed, "unaware of another requests topic")
        self._cluster.broker.recreate(REQUESTS, lambda: chance.choice(UNAWARE_MS))

    def _recreate_source(self) -> None:
        self._cluster.broker.recreate(SOURCE_TOPIC, lambda: self._timeline.chance.choice(UNAWARE_MS))
        self._world.producers.are_gone(by_source=True)

    # -- others -------------------------------------------------------------------------------------------------------

    def _cancel_a_run(self) -> None:
        """Somebody ends a program that is running."""
        running = [body.run_id for body in self._cluster.record.bodies if body.end is None]
        if running:
            run_id = self._timeline.chance.choice(running)
            self._world.requests.ask({"type": "run.cancel", "run_id": run_id}, lambda asked: None)

    def _cancel_at_its_end(self, finished: Transaction) -> None:
        """Somebody ends a program that has just failed: whether it is tried again is not decided yet."""
        (update,) = finished.actions
        assert isinstance(update, Update)
        has_failed = update.values[":outcome"] == "failed"
        if has_failed and not self._cluster.healed and self._at_ends.random() < CANCELLED_AT_ITS_END:
            run_id = update.key.sk.removeprefix("R#")
            self._world.requests.ask({"type": "run.cancel", "run_id": run_id}, lambda asked: None)

    def _cancel_a_job(self) -> None:
        """Somebody takes a job back that waits."""
        items = self._cluster.store.memory.stored()
        waiting = sorted(str(item["id"]) for item in items if str(item["sk"]).startswith("J#"))
        if waiting:
            job_id = self._timeline.chance.choice(waiting)
            self._world.requests.ask({"type": "job.cancel", "job_id": job_id}, lambda asked: None)

    def _heal(self) -> None:
        cluster = self._cluster
        cluster.healed = True
        self._awaited.clear()
        cluster.store.heal()
        cluster.broker.heal()
        cluster.coordinator.forgive()
        cluster.trace.note("world", "healed")
        for node in list(cluster.nodes.values()):
            self._go_on(node)
            self._start(node.name)
        for user in self._world.users:
            user.close()
        for controller in self._world.controllers:
            controller.close()
        for owner in self._world.sources:
            owner.close()
