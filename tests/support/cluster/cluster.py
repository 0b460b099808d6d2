"""`tidegate init`, nodes and the API, each a process with its own port and log, on one data folder and on servers of its own or shared ones."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from unittest import mock

from tests.support.cluster.process import TIDEGATE, ClusterProcess
from tests.support.cluster.topic_reader import make_topic
from tests.support.cluster.until import PATIENCE_S, until
from tests.support.servers.cluster_servers import ClusterServers
from tests.support.servers.servers import DynamoDbForTests, KafkaForTests
from tidegate_bricks import DynamoDbBrick, KafkaBrick, start_together, stop_together
from tidegate_bricks.free_ports import LOOPBACK, free_port
from tidegate_cli.dev.open_programs import end_programs, open_programs
from tidegate_dynamo.client_factory import make_client
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store import DynamoStore

PREFIX = "tidegate"
"""Of topics, where a cluster has servers of its own."""
TOPIC_PARTITIONS = 8
SHARDS = 32
SESSION_S = 6.0
"""The nodes' default Kafka session: how long a dead one keeps its topic partitions."""
MINIMUM_PERIOD_MS = 1_000
"""The system's floor, so that a schedule may fire every few seconds."""
MEMORY = Path("/dev/shm")
"""Linux's file system in memory. DynamoDB Local waits for the disk at each write, a laptop's for 3 ms and more; what these
tests kill and stop are processes, and files in memory outlive those."""
MEMORY_BYTES_MIN = 1 << 30
START_S_MAX = 180.0
"""Of the cluster: all its processes start at once, on a machine that may do much else."""
COMMAND_S_MAX = 300.0
ANSWER_MS_MAX = "30000"
"""Of the bricks, for `tidegate init`, which asks once."""


class Cluster:
    """A cluster with a broker and a store of its own, whose data survive a stop, or a guest on shared servers.

    Args:
        folder: Everything that its processes write.
        nodes: How many serve.
        servers: Shared ones; None for servers of its own.
        node_variables: Settings of all nodes.

    Attributes:
        kafka, dynamodb: The bricks, to be stopped and started with the same ports and data. A guest has none.
        nodes: `node-1`, `node-2`, ...
        api: The API process.
        folder: Everything that any of them writes.
        shards: That the cluster is made with.
        store: For looking at items; judges never use it.
    """

    shards = SHARDS

    def __init__(
        self, folder: Path, nodes: int = 2, servers: ClusterServers | None = None, **node_variables: str
    ) -> None:
        self.folder = folder
        self._shared = servers
        self._memory: Path | None = None
        self.kafka: KafkaBrick
        self.dynamodb: DynamoDbBrick
        if servers is None:
            self.kafka = self.make_kafka(folder / "kafka")
            self.dynamodb = self.make_dynamodb(folder / "dynamodb")
        self._node_count = nodes
        self._node_variables = node_variables
        self.nodes: list[ClusterProcess] = []
        self.api: ClusterProcess
        self.store: DynamoStore

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        return self.servers.kafka.bootstrap_servers

    @property
    def servers(self) -> ClusterServers:
        """Its servers, which run, and its names there."""
        if self._shared is not None:
            return self._shared
        kafka = KafkaForTests(self.kafka.bootstrap_servers, self.kafka)
        return ClusterServers(kafka, DynamoDbForTests(self.dynamodb.endpoint, self.dynamodb), PREFIX)

    @property
    def processes(self) -> list[ClusterProcess]:
        return [*self.nodes, *([self.api] if hasattr(self, "api") else [])]

    @property
    def pids(self) -> list[int]:
        """Of the nodes and bricks that run now."""
        return [*(node.pid for node in self.nodes if node.running), self.kafka.pid, self.dynamodb.pid]

    # -- what a cluster with proxies has otherwise -----------------------------------------------------------------------

    def make_kafka(self, folder: Path) -> KafkaBrick:
        return KafkaBrick(folder)

    def make_dynamodb(self, folder: Path) -> DynamoDbBrick:
        self._memory = _folder_in_memory()
        return DynamoDbBrick(self._memory or folder)

    def brokers_for(self, process: str) -> str:
        """Returns the `host:port` by which a process reaches the broker."""
        return self.bootstrap_servers

    def store_for(self, process: str) -> str:
        """Returns the URL by which a process reaches the store."""
        return self.servers.dynamodb.endpoint_url

    def bricks_are_up(self) -> None:
        """Called before anything but the bricks is started."""

    def command_of(self, process: str) -> Sequence[str]:
        """Returns what starts a process, before its arguments."""
        return TIDEGATE

    # -- looking and waiting -----------------------------------------------------------------------------------------------

    def topic(self, name: str) -> str:
        """Returns the full name of one of tidegate's topics."""
        return f"{self.servers.prefix}.{name}"

    def make_topic(self, name: str, topic_partitions: int = 4) -> str:
        """Makes a topic for delivered messages, with the broker's own append times; returns its name, which for a guest has its prefix."""
        full = name if self._shared is None else self.topic(name)
        make_topic(self.bootstrap_servers, full, topic_partitions)
        return full

    def other(self, node: ClusterProcess) -> ClusterProcess:
        """Returns the other one of two nodes."""
        (other,) = (each for each in self.nodes if each is not node)
        return other

    def until_all_serve(self, patience_s: float = PATIENCE_S) -> None:
        """Waits until every node that runs is ready, has a share, and all shards are served."""

        def served() -> bool:
            running = [node for node in self.nodes if node.running]
            shares = [node.serving_shards for node in running if node.ready]
            return len(shares) == len(running) and min(shares) > 0 and sum(shares) == self.shards

        until(served, "all shards are served, and each node has a share", patience_s)

    def command(self, name: str, *arguments: str, patience_s: float = COMMAND_S_MAX) -> tuple[int | None, str]:
        """Runs a command that ends by itself, with a node's settings; returns its exit status and what it printed.

        None is the status of one that still ran after `patience_s`.
        """
        process = self._process(name, (name, *arguments), 0)
        process.log.unlink(missing_ok=True)
        process.start()
        status = process.wait(patience_s)
        process.close()
        return status, process.log.read_text(encoding="utf-8")

    def assert_all_run(self) -> None:
        """Fails, with its last words, when a process has ended that nobody killed."""
        for process in self.processes:
            assert process.running, f"{process.name} ended by itself:\n{process.last_lines()}"

    def stop(self) -> None:
        """Drains the nodes, ends everything; programs that still run are ended as well."""
        for process in self.processes:
            process.close()
        end_programs(open_programs(self.folder / "data" / "runs"))
        if self._shared is None:
            stop_together([self.kafka, self.dynamodb])
        if self._memory is not None and self._memory.exists():
            # Kept beside the logs: whoever looks for the cause of a failure wants the items.
            shutil.copytree(self._memory, self.folder / "dynamodb", dirs_exist_ok=True)
            shutil.rmtree(self._memory, ignore_errors=True)

    def logs(self) -> dict[str, str]:
        """Returns the end of each process's log."""
        return {process.name: process.last_lines() for process in self.processes}

    # -- start --------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        secret = self.folder / "gate-secret"
        secret.write_text(secrets.token_hex(32), encoding="ascii")
        if self._shared is None:
            start_together([self.kafka, self.dynamodb])
            self.bricks_are_up()
        ports = self._ports()
        variables = {"TIDEGATE_SHARDS": str(self.shards), "TIDEGATE_KAFKA__ANSWER_MS_MAX": ANSWER_MS_MAX}
        initialise = self._process("init", ("init",), 0, **variables)
        initialise.start()
        status = initialise.wait(START_S_MAX)
        initialise.close()
        assert status == 0, initialise.last_lines()
        self.api = self._process("api", ("api",), ports[0])
        self.nodes = [self.make_node(number, port) for number, port in enumerate(ports[1:], start=1)]
        for process in self.processes:
            process.start()
        for process in self.processes:
            process.until_ready(START_S_MAX)
        self.until_all_serve(START_S_MAX)
        self.store = self._make_store()

    def make_node(self, number: int, port: int) -> ClusterProcess:
        """Returns a node that is not started yet; `port` is its health's."""
        return self._process(f"node-{number}", ("node",), port, **self._node_variables)

    def _ports(self) -> list[int]:
        ports: list[int] = []
        for _ in range(1 + self._node_count):
            ports.append(free_port(avoid=frozenset(ports)))
        return ports

    def _process(self, name: str, arguments: tuple[str, ...], port: int, **variables: str) -> ClusterProcess:
        environment = {**self._environment(name, port), **variables}
        command = (*self.command_of(name), *arguments)
        return ClusterProcess(name, command, environment, self.folder / f"{name}.log", f"http://{LOOPBACK}:{port}")

    def _environment(self, name: str, port: int) -> Mapping[str, str]:
        common = {
            **self.servers.variables(),
            "TIDEGATE_KAFKA__BOOTSTRAP_SERVERS": self.brokers_for(name),
            "TIDEGATE_KAFKA__CLIENT_ID": f"tidegate-{name}",
            "TIDEGATE_DYNAMODB__ENDPOINT_URL": self.store_for(name),
            "TIDEGATE_GATE__SECRET_FILE": str(self.folder / "gate-secret"),
            "TIDEGATE_DATA_DIR": str(self.folder / "data"),
        }
        if name == "api":
            return {**common, "TIDEGATE_API__HOST": LOOPBACK, "TIDEGATE_API__PORT": str(port)}
        return {
            **common,
            "TIDEGATE_NODE": name,
            "TIDEGATE_KAFKA__TOPIC_PARTITIONS": str(TOPIC_PARTITIONS),
            "TIDEGATE_KAFKA__SESSION_MS": str(int(SESSION_S * 1_000)),
            "TIDEGATE_MINIMUM_PERIOD_MS": str(MINIMUM_PERIOD_MS),
            "TIDEGATE_GATE__URL": self.api.url if hasattr(self, "api") else f"http://{LOOPBACK}",
            "TIDEGATE_HEALTH__HOST": LOOPBACK,
            "TIDEGATE_HEALTH__PORT": str(port),
            "TIDEGATE_LOG__FORMAT": "json",
        }

    def _make_store(self) -> DynamoStore:
        dynamodb = self.servers.dynamodb
        settings = DynamoSettings(
            endpoint_url=dynamodb.endpoint_url,
            region=dynamodb.region,
            table_prefix=self.servers.table_prefix,
            read_timeout_s=PATIENCE_S,
        )
        # The client takes its credentials from the environment, and only while it is made.
        with mock.patch.dict(os.environ, self.servers.credentials()):
            return DynamoStore(make_client(settings).items, settings)


def _folder_in_memory() -> Path | None:
    try:
        roomy = shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN
        return Path(tempfile.mkdtemp(prefix="tidegate-", dir=MEMORY)) if roomy else None
    except OSError:
        return None
