"""Nodes of two releases side by side on real bricks: rolled under load, killed in turn, and the store migrated behind them (decision 26).

Whether anything was lost, doubled, miscounted or early is judged only by what programs and sink wrote (I1-I4, I8).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.checkers.faults import report
from tests.support.checkers.messages import Crash, judge_messages, repeats_of
from tests.support.cluster.background import Repeatedly
from tests.support.cluster.cluster import SHARDS, Cluster
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.machine_stalls import Standstills
from tests.support.cluster.measurements import show
from tests.support.cluster.message_load import MessageBook, MessageLoad, deliveries_of
from tests.support.cluster.older_release import OLDER
from tests.support.cluster.pipeline_load import Pipeline
from tests.support.cluster.process import TIDEGATE, ClusterProcess
from tests.support.cluster.scenario import cut_hand_overs, settle
from tests.support.cluster.store_view import StoreView
from tests.support.cluster.topic_reader import read_topic
from tests.support.cluster.until import now_ms, until
from tests.support.cluster.user_client import Client
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.node_status import NodeStatus
from tidegate_core.rows.schema_version import FIRST, NEWEST, StoreSchema
from tidegate_node.startup_checks import EXIT_CONFIGURATION

FEED_EVERY_S = 0.7
RUNS_MORE = 6
"""So many programs begin under each mixture of releases before the next step."""
CARDS_ARE_SILENT_S = 180.0
"""The card of a node that was told to end is believed for a while; the machine may be busy."""
SEED_VARIABLE = "TIDEGATE_TEST_SEED"


class RolledCluster(Cluster):
    """A cluster of the older release, made and run by it, of which one process after the other is replaced."""

    def __init__(self, folder: Path) -> None:
        self._newer: set[str] = set()
        super().__init__(folder)

    def command_of(self, process: str) -> Sequence[str]:
        is_older = process in {"init", "api", *(f"node-{number}" for number in (1, 2))} - self._newer
        return OLDER if is_older else TIDEGATE

    def roll(self, node: ClusterProcess) -> ClusterProcess:
        """Has a node of the older release end, and one of this release serve in its place, which is returned."""
        node.terminate()
        assert node.wait() == 0, node.last_lines()
        self._newer.add(node.name)
        self._replace(node).start()
        return self._serving(node.name)

    def roll_api(self) -> None:
        """The same with the API, whose calls fail meanwhile."""
        self.api.close()
        self._newer.add("api")
        self.api = self._process("api", ("api",), _port(self.api))
        self.api.start()
        self.api.until_ready()

    def back(self, node: ClusterProcess) -> ClusterProcess:
        """Ends a node, and starts the older release in its place."""
        node.terminate()
        assert node.wait() == 0, node.last_lines()
        self._newer.discard(node.name)
        older = self._replace(node)
        older.start()
        return older

    def kill(self, node: ClusterProcess) -> Crash:
        """Kills a node, waits until the other one serves all, and brings it back in its own release."""
        view = StoreView(self.store)
        held = view.held_by(str(node.events("node_started")[-1]["owner"]))
        assert held, f"{node.name} holds nothing"
        at = now_ms()
        node.kill()
        until(lambda: self.other(node).serving_shards == SHARDS, f"the other one serves all that {node.name} held")
        crash = Crash(at, frozenset().union(*map(view.shards_of, held)), now_ms())
        node.start()
        self._serving(node.name)
        return crash

    def until_reads(self, reads: Mapping[str, int]) -> None:
        """Waits until the nodes that serve say by their names that they can read that: a node's card is not its first write."""
        owners = {node.name: keys.node_status(str(node.events("node_started")[-1]["owner"])) for node in self.nodes}

        def told() -> dict[str, int]:
            cards = self.store.get(list(owners.values()))
            return {name: from_item(NodeStatus, cards[key]).reads for name, key in owners.items() if key in cards}

        until(lambda: len(told()) == len(owners), "all nodes have a card")
        assert told() == reads

    def schema(self) -> StoreSchema:
        return StoreSchema.of(self.store.get([keys.SCHEMA_KEY]).get(keys.SCHEMA_KEY))

    def _replace(self, node: ClusterProcess) -> ClusterProcess:
        node.close()
        at = self.nodes.index(node)
        self.nodes[at] = self.make_node(at + 1, _port(node))
        return self.nodes[at]

    def _serving(self, name: str) -> ClusterProcess:
        (node,) = (each for each in self.nodes if each.name == name)
        node.until_ready()
        self.until_all_serve()
        return node


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[RolledCluster]:
    with RolledCluster(folder) as running:
        yield running


@pytest.mark.nightly
@pytest.mark.timeout(1_200)
def test_given_a_roll_to_another_release_under_load_then_nothing_is_lost_doubled_miscounted_or_early(
    cluster: RolledCluster, client: Client, evidence: Evidence, standstills: Standstills
) -> None:
    seed = int(os.environ.get(SEED_VARIABLE, "") or random.SystemRandom().randrange(1 << 32))
    show(f"\nseed {seed} (again with {SEED_VARIABLE}={seed})")
    chance = random.Random(seed)
    assert cluster.schema() == StoreSchema(writes=FIRST, rows_from=FIRST)
    cluster.until_reads({"node-1": FIRST, "node-2": FIRST})
    sink = cluster.make_topic("orders.out")
    book = MessageBook(client, sink)
    pipeline = Pipeline(client, evidence)
    pipeline.apply(start=now_ms() + 3_000)

    def go_on() -> None:
        begun = len(evidence.runs())
        until(lambda: len(evidence.runs()) >= begun + RUNS_MORE, f"{RUNS_MORE} more programs begin")

    with MessageLoad(book, chance), Repeatedly(lambda: pipeline.feed(chance), FEED_EVERY_S):
        go_on()
        newer = cluster.roll(cluster.nodes[0])
        cluster.until_reads({"node-1": NEWEST, "node-2": FIRST})
        go_on()
        # What each of them has written is taken over by the other release.
        crashes = [cluster.kill(newer), cluster.kill(cluster.other(newer))]
        go_on()
        status, said = cluster.command("migrate", "--finish")
        assert (status, "node node-2" in said) == (1, True), said
        assert cluster.schema().writes == FIRST, "a node of the older release serves"

        cluster.roll(cluster.nodes[1])
        cluster.roll_api()
        until(lambda: cluster.command("migrate", "--finish")[0] == 0, "the store is migrated", CARDS_ARE_SILENT_S)
        assert cluster.schema() == StoreSchema(writes=NEWEST, rows_from=NEWEST)
        go_on()
        crashes.append(cluster.kill(cluster.nodes[0]))

    settle(cluster, client, pipeline, book, sink, chance)
    cluster.assert_all_run()
    deliveries = deliveries_of(read_topic(cluster.bootstrap_servers, sink))
    sent = book.sent(read_topic(cluster.bootstrap_servers, cluster.topic("receipts")))
    faults = pipeline.judge() + judge_messages(
        sent, deliveries, [*crashes, *cut_hand_overs(cluster)], unrests=standstills.unrests()
    )
    assert not faults, report(faults)
    show(f"{len(evidence.runs())} program runs, {len(sent)} messages, {repeats_of(deliveries)} repeats")

    # There is no way back: it ends at once, and what it would have misread is not read.
    outdated = cluster.back(cluster.nodes[1])
    assert outdated.wait() == EXIT_CONFIGURATION, outdated.last_lines()
    assert "run the newer release" in outdated.events("node_refused")[-1]["message"]
    until(lambda: cluster.nodes[0].serving_shards == SHARDS, "the other node serves all")


def _port(process: ClusterProcess) -> int:
    port = urlsplit(process.url).port
    assert port is not None
    return port
