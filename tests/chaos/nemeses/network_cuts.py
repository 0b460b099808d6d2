"""Cuts between a node and its bricks, in one direction or both, that deliver late what they held, or lose it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import get_args

from tests.chaos.nemeses.nemesis import Blow, Nemesis
from tests.chaos.proxies.link import DIRECTIONS, Ending
from tests.chaos.rig.proxied_cluster import broker_link, store_link
from tests.chaos.rig.rig import Rig, grown
from tests.support.checkers.messages import TAKEN_OVER_MS_MIN
from tests.support.cluster.cluster import SESSION_S
from tests.support.cluster.process import ClusterProcess
from tests.support.cluster.until import now_ms

BROKER_S = (1.2 * SESSION_S, 2.5 * SESSION_S)
"""Long enough that the group gives the node's share away."""
STORE_S = (3.0, 26.0)
"""From just above the client's time-out to beyond the 20 s after which a node that is alone with it leaves the group."""
WAITED = ("held_to_server", "held_to_client", "stalled")


def cut(
    name: str,
    link_of: Callable[[str], str],
    seconds: tuple[float, float],
    needs: tuple[str, ...],
    directions: Collection[str] = DIRECTIONS,
) -> Nemesis:
    """Returns the nemesis that cuts such a link of one node."""

    def blow(rig: Rig, node: ClusterProcess) -> Blow:
        link = link_of(node.name)
        shards = rig.shards_of(node)
        ending: Ending = rig.chance.choice(get_args(Ending))
        before = rig.cluster.control.link_counts(link)
        at = now_ms()
        rig.cluster.cut(link, directions, ending)
        try:
            # The fault itself, no synchronisation.
            time.sleep(rig.chance.uniform(*seconds))
        finally:
            rig.cluster.heal(link)
        healed_at = now_ms()
        waited = grown(before, rig.cluster.control.link_counts(link))
        felt = {"cuts": 1, "waited": sum(waited.get(count, 0) for count in WAITED)}
        return Blow((node.name,), at, healed_at, shards, wire=link == broker_link(node.name), felt=felt)

    # The group notices a silence; a node that does not reach the store goes by itself.
    moves_after_ms = TAKEN_OVER_MS_MIN if link_of is broker_link else 0
    return Nemesis(name, blow, ("waited", *needs), moves_after_ms)


BROKER_CUT = cut("cut from the broker", broker_link, BROKER_S, ("rebalances", "guard_lapsed"))
BROKER_DEAF = cut("cut from the broker, one way back", broker_link, BROKER_S, ("guard_lapsed",), ("to_client",))
BROKER_MUTE = cut("cut from the broker, one way there", broker_link, BROKER_S, ("rebalances",), ("to_server",))
STORE_CUT = cut("cut from the store", store_link, STORE_S, ("failed_calls",))
STORE_DEAF = cut("cut from the store, one way back", store_link, STORE_S, ("failed_calls",), ("to_client",))
STORE_MUTE = cut("cut from the store, one way there", store_link, STORE_S, ("failed_calls",), ("to_server",))
