"""Giving topic partitions away in an orderly manner, as both group protocols do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tests.simulation.runner.swarm import DRAIN_MS_MAX

if TYPE_CHECKING:
    from tests.simulation.world.assignment import Tenure
    from tests.simulation.world.node import Node

CHECK_MS = 50


def drain(node: Node, topic_partitions: frozenset[int], done: Callable[[], None]) -> None:
    """Drains what a node holds of them, drops it when it has, or when the time is over, and says so."""
    node.given -= topic_partitions
    hand_over(node, [node.tenures[number] for number in sorted(topic_partitions) if number in node.tenures], done)


def hand_over(node: Node, tenures: Sequence[Tenure], done: Callable[[], None]) -> None:
    """The same for these, whoever holds next: another node, or this one under another map."""
    for tenure in tenures:
        tenure.drain()
    deadline = node.process.timeline.now + DRAIN_MS_MAX

    def look() -> None:
        if all(tenure.drained for tenure in tenures) or node.process.timeline.now >= deadline:
            for tenure in tenures:
                tenure.drop("revoked")
                if node.tenures.get(tenure.topic_partition) is tenure:
                    del node.tenures[tenure.topic_partition]
            done()
        else:
            node.process.after(CHECK_MS, look)

    look()
