"""The requests topic is deleted and made anew under nodes that serve, as whoever does so on purpose does it: nobody sends meanwhile, and all
that lay in it was read. What waits in the store goes on, and what is sent afterwards is read from the new one's beginning.
"""

from __future__ import annotations

from tidegate_testkit.chaos.nemesis import Blow, Nemesis
from tidegate_testkit.chaos.rig import Rig
from tidegate_testkit.cluster.client import REQUESTS
from tidegate_testkit.cluster.process import ClusterProcess
from tidegate_testkit.cluster.topics import ends_of, make_topic_anew
from tidegate_testkit.cluster.waiting import now_ms, until

READ_S_MAX = 60.0
"""Until all that was sent is read: a busy cluster may be some seconds behind."""
FOLLOWED_S_MAX = 150.0
"""Nodes look at the topic once a minute, and when a reader finds another one; and what a busy machine takes."""


def make_anew(rig: Rig, _: ClusterProcess) -> Blow:
    nodes = [node for node in rig.cluster.nodes if node.running]
    before = {node.name: len(node.events("map_followed")) for node in nodes}
    old = rig.view.map.topic_id
    with rig.client.without_requests():
        until(lambda: _is_read(rig), "the requests topic is read to its end", READ_S_MAX)
        at = now_ms()
        make_topic_anew(rig.cluster.bootstrap_servers, REQUESTS)
        until(
            lambda: all(len(node.events("map_followed")) > before[node.name] for node in nodes),
            "all nodes follow the map of the topic that was made anew",
            FOLLOWED_S_MAX,
        )
    rig.view.look_at_the_map()
    return Blow(
        tuple(node.name for node in nodes), at, now_ms(), felt={"topics made anew": int(rig.view.map.topic_id != old)}
    )


def _is_read(rig: Rig) -> bool:
    ends = ends_of(rig.cluster.bootstrap_servers, REQUESTS)
    return all(rig.view.place(number).next_offset >= end for number, end in ends.items())


MADE_ANEW = Nemesis("requests topic made anew", make_anew, ("topics made anew", "messages"), moves_after_ms=0)
