"""The requests topic is deleted and made anew under nodes that serve, as whoever does so on purpose does it: nobody sends meanwhile, and all
that lay in it was read. What waits in the store goes on, and what is sent afterwards is read from the new one's beginning.
"""

from __future__ import annotations

from tests.chaos.nemeses.nemesis import Blow, Nemesis
from tests.chaos.rig.rig import Rig
from tests.support.cluster.process import ClusterProcess
from tests.support.cluster.topic_reader import ends_of, make_topic_anew
from tests.support.cluster.until import now_ms, until

READ_S_MAX = 60.0
"""Until all that was sent is read: a busy cluster may be some seconds behind."""
FOLLOWED_S_MAX = 150.0
"""Nodes look at the topic once a minute, and when a reader finds another one; and what a busy machine takes."""


def make_anew(rig: Rig, _: ClusterProcess) -> Blow:
    nodes = [node for node in rig.cluster.nodes if node.running]
    before = {node.name: _followed(rig, node) for node in nodes}
    old = rig.view.map.topic_id
    with rig.client.without_requests():
        until(lambda: _is_read(rig), "the requests topic is read to its end", READ_S_MAX)
        at = now_ms()
        make_topic_anew(rig.cluster.bootstrap_servers, rig.cluster.topic("requests"))
        until(
            lambda: all(
                now > then for node in nodes for now, then in zip(_followed(rig, node), before[node.name], strict=True)
            ),
            "all nodes follow the map of the topic that was made anew, and read it with another client",
            FOLLOWED_S_MAX,
        )
    rig.view.look_at_the_map()
    return Blow(
        tuple(node.name for node in nodes), at, now_ms(), felt={"topics made anew": int(rig.view.map.topic_id != old)}
    )


def _followed(rig: Rig, node: ClusterProcess) -> tuple[int, ...]:
    """How often it followed a map, and read the topic with another client: shares move at either."""
    topic = rig.cluster.topic("requests")
    requests = [said for said in node.events("kafka_client_renewed") if said["topic"] == topic]
    return len(node.events("map_followed")), len(requests)


def _is_read(rig: Rig) -> bool:
    ends = ends_of(rig.cluster.bootstrap_servers, rig.cluster.topic("requests"))
    return all(rig.view.place(number).next_offset >= end for number, end in ends.items())


MADE_ANEW = Nemesis("requests topic made anew", make_anew, ("topics made anew", "messages"), moves_after_ms=0)
