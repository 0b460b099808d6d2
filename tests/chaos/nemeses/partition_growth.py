"""The requests topic gets more topic partitions under nodes that serve: by the command, or by a tool that knows nothing of maps."""

from __future__ import annotations

from collections.abc import Callable

from tests.chaos.nemeses.nemesis import Blow, Nemesis
from tests.chaos.rig.rig import Rig
from tests.support.cluster.cluster import SHARDS
from tests.support.cluster.process import ClusterProcess
from tests.support.cluster.topic_reader import add_topic_partitions
from tests.support.cluster.until import now_ms, until

ADDED = 1
"""There is no way back: a long campaign shall have room for many."""
FOLLOWED_S_MAX = 150.0
"""Members see new topic partitions within 30 s, nodes look at the topic once a minute; and what a busy machine takes."""


def by_command(rig: Rig, wanted: int) -> None:
    """`tidegate partitions grow`."""
    status, printed = rig.cluster.command("partitions", "grow", str(wanted))
    assert status == 0, f"tidegate partitions grow {wanted} ended with {status}:\n{printed}"


def by_another_tool(rig: Rig, wanted: int) -> None:
    """The topic alone grows; nodes find that out by themselves."""
    add_topic_partitions(rig.cluster.bootstrap_servers, rig.cluster.topic("requests"), wanted)


def growth(name: str, grow: Callable[[Rig, int], None]) -> Nemesis:
    """Returns the nemesis that has the topic grow, and waits until all nodes follow the new map."""

    def blow(rig: Rig, _: ClusterProcess) -> Blow:
        nodes = [node for node in rig.cluster.nodes if node.running]
        before = {node.name: len(node.events("map_followed")) for node in nodes}
        wanted = rig.view.map.topic_partitions + ADDED
        at = now_ms()
        grow(rig, wanted)
        until(
            lambda: all(len(node.events("map_followed")) > before[node.name] for node in nodes),
            "all nodes follow the map that has grown",
            FOLLOWED_S_MAX,
        )
        rig.view.look_at_the_map()
        return Blow(
            tuple(node.name for node in nodes),
            at,
            now_ms(),
            felt={"maps": int(wanted == rig.view.map.topic_partitions)},
        )

    return Nemesis(name, blow, ("maps", "rebalances"), moves_after_ms=0, possible=has_room)


def has_room(rig: Rig) -> bool:
    """Whether there may be more topic partitions: never more than shards."""
    return rig.view.map.topic_partitions + ADDED <= SHARDS


BY_COMMAND = growth("growth by command", by_command)
BY_ANOTHER_TOOL = growth("growth by another tool", by_another_tool)
