"""Starts the nodes, and crashes, freezes, restarts them as the swarm says; in the end all faults stop."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tidegate_core.store.values import Transaction
from tidegate_testkit.simulation.faults.node import Trouble
from tidegate_testkit.simulation.node import Node
from tidegate_testkit.simulation.swarm import SESSION_MS

if TYPE_CHECKING:
    from tidegate_testkit.simulation.world import World

HEAL_AFTER_MS: Final = 2_000
STEPS: Final = 6
"""Steps of clocks in a world in which they do."""
CANCELS_MAX: Final = 3
"""Programs that somebody ends while they run."""


class Troubles:
    """Plans all of it when the world is built."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cluster = world.cluster
        self._timeline = world.cluster.timeline
        self._awaited: list[Trouble] = []
        world.cluster.store.on_taken_effect = self._taken_effect

    def plan(self) -> None:
        swarm, after = self._cluster.swarm, self._timeline.after
        for number in range(swarm.nodes):
            after(self._timeline.between(0, 800), partial(self._start, f"node{number}"))
        for trouble in swarm.node.trouble:
            after(trouble.at, partial(self._come, trouble))
        for _down_from, down_to in swarm.broker.downs:
            after(down_to + 1, self._cluster.coordinator.forgive)
        for _ in range(self._timeline.chance.randint(0, CANCELS_MAX)):
            after(self._timeline.between(3_000, swarm.busy_ms), self._cancel_a_run)
        for _ in range(STEPS if swarm.node.steps else 0):
            after(self._timeline.between(3_000, swarm.busy_ms), self._step_a_clock)
        after(swarm.busy_ms + HEAL_AFTER_MS, self._heal)

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
        for trouble in [each for each in self._awaited if each.once_applied == transaction.name]:
            owner = transaction.token.split("/", 1)[0]
            for node in self._cluster.nodes.values():
                if node.owner == owner and node.process.alive:
                    self._awaited.remove(trouble)
                    self._befall(trouble, node, f"on {transaction.name}")
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
                self._cluster.trace.bit("pause", "beyond session" if length > SESSION_MS else "within session")
                self._cluster.record.pauses.append((node.name, self._timeline.now, self._timeline.now + length))
                node.process.pause()
                after(length, lambda: self._go_on(node))

    def _go_on(self, node: Node) -> None:
        if node.process.paused:
            self._cluster.trace.note(node.name, "goes on")
            node.process.go_on()

    def _step_a_clock(self) -> None:
        drift = self._cluster.swarm.node.drift_ms
        nodes = [node for node in self._cluster.nodes.values() if node.process.alive]
        if nodes and not self._cluster.healed:
            self._cluster.trace.bit("clock_step", "node")
            self._timeline.chance.choice(nodes).offset_ms = self._timeline.chance.randint(-drift, drift)

    # -- others -------------------------------------------------------------------------------------------------------

    def _cancel_a_run(self) -> None:
        """Somebody ends a program that is running."""
        running = [body.run_id for body in self._cluster.record.bodies if body.end is None]
        if running:
            run_id = self._timeline.chance.choice(running)
            self._world.requests.ask({"type": "run.cancel", "run_id": run_id}, lambda asked: None)

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
