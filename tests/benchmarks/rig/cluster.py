"""The cluster that is measured: broker, store in memory, one API and nodes, of this source tree or of another one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.benchmarks.rig import null_launcher_node
from tests.benchmarks.rig.bulk_producer import REQUESTS, BulkProducer, Outgoing
from tests.benchmarks.rig.call_replays import Logs
from tests.benchmarks.rig.quiescence import Settled
from tests.benchmarks.rig.resource_meter import Meter
from tests.benchmarks.rig.sink import SinkReader
from tests.support.cluster.cluster import TOPIC_PARTITIONS, Cluster
from tests.support.cluster.process import TIDEGATE, ClusterProcess
from tidegate_bricks import DynamoDbBrick, KafkaBrick
from tidegate_bricks.free_ports import free_port

SINK_TOPIC_PARTITIONS = 4
SHARDS = 256
"""The product's default."""
HEAP_MB = 4_096
"""Of the store: a million messages are two million items of some 500 bytes, and Java's objects around them."""
JAVA_OPTIONS = ("-XX:+UseParallelGC",)
"""Not the ones for a quick start: a store whose code is compiled for good, and that does not stop the world for seconds."""
APPLY_S_MAX = 3_600.0


class BenchCluster(Cluster):
    """A cluster whose store has no disk to wait for, and whose processes run the code of a given tree.

    Args:
        folder: Everything that any of them writes.
        shards: That it is made with.
        tree: Root of a source tree with `shared` and `services`; None for the installation.
        quick: A store that starts quickly and is slower then.
    """

    def __init__(self, folder: Path, shards: int = SHARDS, tree: Path | None = None, *, quick: bool = False) -> None:
        self.shards = shards
        self._tree = tree
        self._quick = quick
        self.launches = folder / "launches.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        self.launches.touch()
        super().__init__(folder, 1, None, **{null_launcher_node.VARIABLE: str(self.launches)})

    def make_kafka(self, folder: Path) -> KafkaBrick:
        return KafkaBrick(folder)

    def make_dynamodb(self, folder: Path) -> DynamoDbBrick:
        return DynamoDbBrick(None) if self._quick else DynamoDbBrick(None, heap_mb=HEAP_MB, java_options=JAVA_OPTIONS)

    def command_of(self, process: str) -> Sequence[str]:
        command = (sys.executable, "-P", null_launcher_node.__file__) if process.startswith("node-") else TIDEGATE
        if self._tree is None:
            return command
        return ("env", f"PYTHONPATH={self._tree / 'shared'}:{self._tree / 'services'}", *command)


class Stack:
    """A running cluster with what workloads need of it.

    Args:
        cluster: Not started yet.

    Attributes:
        cluster, folder, shards: Of the cluster.
        producer: Of requests and events.
        settled: Looks whether all is dealt with.
    """

    def __init__(self, cluster: BenchCluster) -> None:
        self.cluster = cluster
        self.folder = cluster.folder
        self.shards = cluster.shards
        self._names = 0
        self.producer: BulkProducer
        self.settled: Settled

    def __enter__(self) -> Self:
        self.cluster.__enter__()
        self.producer = BulkProducer(self.cluster.bootstrap_servers, TOPIC_PARTITIONS)
        self.settled = Settled(self.cluster.bootstrap_servers, self.cluster.store)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.settled.close()
        self.cluster.__exit__(kind, error, trace)

    @property
    def node(self) -> ClusterProcess:
        """The first one."""
        return self.cluster.nodes[0]

    def nodes_meter(self) -> Meter:
        """Returns a meter of all nodes that there are now, without the API."""
        return Meter(self.cluster.nodes)

    def new_name(self, what: str) -> str:
        """Returns a name that nothing of this cluster has yet: workloads of the smoke share one."""
        self._names += 1
        return f"{what}-{self._names}"

    def sink_topic(self) -> str:
        return self.cluster.make_topic(self.new_name("bench.sink"), SINK_TOPIC_PARTITIONS)

    def replay_logs(self) -> Logs:
        """Returns the broker's part of a replay, on topics that nothing else has."""
        cluster = self.cluster
        return Logs(cluster.bootstrap_servers, cluster.make_topic, TOPIC_PARTITIONS, self.new_name("bench.replay"))

    def consumer_of(self, topic: str, count: int) -> SinkReader:
        """Returns the sink's consumer, to be used as a context; after `count` ids it ends."""
        return SinkReader(self.cluster.bootstrap_servers, topic, self.folder, count)

    def apply(self, requests: Sequence[Outgoing]) -> None:
        """Sends requests, and waits until all are applied, also those that came in another shard's topic partition.

        Raises:
            AssertionError: One was refused.
        """
        self.producer.send(REQUESTS, requests)
        self.until_applied()
        self.settled.assert_nothing_was_refused()

    def until_read(self, topic: str = REQUESTS) -> None:
        """Waits until the nodes are through all that the topic has: what came to the right topic partition is applied."""
        self.settled.until_read(topic, APPLY_S_MAX)

    def until_applied(self, topic: str = REQUESTS, shards: Iterable[int] | None = None) -> None:
        """Waits for the inboxes as well; a look at them is a query for each of these shards, and takes a second with all 256."""
        self.until_read(topic)
        self.settled.until_inboxes_are_empty(APPLY_S_MAX, shards)

    @contextmanager
    def with_nodes(self, number: int) -> Iterator[None]:
        """Has so many nodes share the shards while it is entered; those beyond the first one drain and end behind it."""
        more = [self.cluster.make_node(len(self.cluster.nodes) + extra, free_port()) for extra in range(1, number)]
        for node in more:
            self.cluster.nodes.append(node)
            node.start()
        try:
            for node in more:
                node.until_ready()
            self.cluster.until_all_serve()
            yield
        finally:
            for node in more:
                node.terminate()
                node.wait()
                node.close()
                self.cluster.nodes.remove(node)
            self.cluster.until_all_serve()
