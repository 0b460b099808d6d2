"""The cluster under attack with all that nemeses need of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tests.chaos.proxies.store_faults import UNKNOWN_FATE
from tests.chaos.proxies.store_proxy import REFUSED
from tests.chaos.rig.node_counters import Meter
from tests.chaos.rig.proxied_cluster import ChaosCluster
from tests.support.cluster.cluster import SHARDS
from tests.support.cluster.process import ClusterProcess
from tests.support.cluster.store_view import StoreView
from tests.support.cluster.until import NotInTime, until
from tests.support.cluster.user_client import Client

PUT_OUT = ("lost", "not_a_member", "fenced", "kafka_probe_refused")
"""By these log events a node says that it knows that it was put out."""
DROPPED = "kafka_producer_dropped"
LAPSED = "guard lapsed"
"""The reason of such an event where membership was not proven in time; producers are dropped at a node's end as well."""
CONDITIONAL = ("TransactWriteItems", "PutItem", "UpdateItem", "DeleteItem")
"""Operations that an owner's epoch is a condition of."""
TAKE_OVER_S_MAX = 60.0
COUNTED_S_MAX = 20.0
RECOVERY_S_MAX = 120.0
"""Until all shards are served again; a machine of two cores starts nodes, programs and a broker beside it."""


@dataclass(frozen=True, slots=True)
class Rig:
    """What a nemesis acts on.

    Attributes:
        cluster: With its proxies.
        client: Sends what poisons.
        view: Who holds which shards.
        meter: Is asked while it all goes on.
        chance: Of the nemeses.
    """

    cluster: ChaosCluster
    client: Client
    view: StoreView
    meter: Meter
    chance: random.Random

    def pick(self) -> ClusterProcess:
        """Returns a node that has a share."""
        return self.chance.choice([node for node in self.cluster.nodes if self.shards_of(node)])

    def shards_of(self, node: ClusterProcess) -> frozenset[int]:
        """Returns the shards that follow from the topic partitions whose item names this life of the node."""
        started = node.events("node_started")
        held = self.view.held_by(str(started[-1]["owner"])) if started else ()
        return frozenset().union(*(self.view.shards_of(number) for number in held))

    def others_serve_all(self, *gone: ClusterProcess) -> None:
        """Waits until nodes that are not gone serve all shards."""
        others = [node for node in self.cluster.all_nodes if node not in gone and node.running]
        until(lambda: sum(node.serving_shards for node in others) == SHARDS, "others serve all", TAKE_OVER_S_MAX)

    def bring_back(self, *nodes: ClusterProcess) -> None:
        """Starts nodes and waits until they are ready."""
        for node in nodes:
            node.start()
        for node in nodes:
            node.until_ready(RECOVERY_S_MAX)

    def recovered(self) -> None:
        """Waits until every node has a share and all shards are served."""
        self.cluster.until_all_serve(RECOVERY_S_MAX)

    def said(self, names: Sequence[str], *nodes: ClusterProcess) -> int:
        """Returns how many events of those names nodes logged, or all nodes."""
        return sum(len(node.events(name)) for node in nodes or self.cluster.nodes for name in names)

    def refused(self, node: ClusterProcess) -> int:
        """Returns how many requests of a node's the store has refused because of a condition."""
        counts = self.cluster.control.store_counts(node.name)
        return sum(count for (kind, _), count in counts.items() if kind == REFUSED)

    def held_writes(self, node: ClusterProcess) -> int:
        """Returns how many conditional writes of a node's were held on the way to the store so far."""
        counts = self.cluster.control.store_counts(node.name)
        return sum(counts["hold", operation] for operation in CONDITIONAL)

    def counted(self) -> Counter[str]:
        """Returns everything that is counted, of nodes and proxies, by now."""
        with suppress(NotInTime):
            # A page that comes too late on a busy machine would have what was felt look as if it was not.
            until(lambda: self.meter.look(self.cluster.all_nodes), "all nodes tell their counters", COUNTED_S_MAX)
        counts = self.meter.total()
        for (kind, _), count in self.cluster.control.store_counts().items():
            counts[f"store_{kind}"] += count
            counts["lost_answers"] += count if kind in UNKNOWN_FATE else 0
        counts["put_out"] = self.said(PUT_OUT)
        counts["guard_lapsed"] = sum(
            event.get("reason") == LAPSED for node in self.cluster.all_nodes for event in node.events(DROPPED)
        )
        counts["clock_stepped"] = self.said(("clock_stepped",))
        return counts


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Returns by how much each count grew, where it did."""
    more = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in more.items() if count > 0}
