"""A real Kafka broker on this machine: one KRaft node on the loopback interface, without Docker."""

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tidegate_bricks.broker_config import ExtraListener, KafkaPorts, render, server_properties
from tidegate_bricks.download_progress import ProgressListener, silent
from tidegate_bricks.errors import BrickFailed, BrickUnavailable, PortTaken
from tidegate_bricks.free_ports import LOOPBACK, free_port, is_free
from tidegate_bricks.java_runtime import Java
from tidegate_bricks.java_server import QUICK_START, JavaServer
from tidegate_bricks.kafka_storage import cluster_id_of, format_storage
from tidegate_bricks.releases import KAFKA

LOG_SETTINGS = Path(__file__).with_name("kafka_log4j2.properties")
#: Heap limit, MiB: enough for hundreds of topic partitions and 8 MiB batches. The process then takes about 220 MB of memory (measured).
HEAP_MB = 512
#: Seconds. Time-out of one query to a starting broker; it is repeated.
ASK_TIMEOUT_S = 1.0


class KafkaBrick(JavaServer):
    """A broker with its data in one folder, which survive restarts, also hard ones.

    Attributes:
        bootstrap_servers: `host:port` for clients, once it was started.
    """

    def __init__(
        self,
        data_dir: Path | None,
        *,
        port: int | None = None,
        preferred_port: int | None = None,
        controller_port: int | None = None,
        extra_listeners: Sequence[ExtraListener] = (),
        extra_config: Mapping[str, str] | None = None,
        heap_mb: int = HEAP_MB,
        java_options: Sequence[str] = QUICK_START,
        listener: ProgressListener = silent,
    ) -> None:
        """Prepares a broker; `start` runs it.

        Args:
            data_dir: Folder of its data, created if missing; None uses one that is removed with this object.
            port: Required port for clients; the start fails if it is taken.
            preferred_port: Port to take if it is free and `port` is not given.
            controller_port: Required port of the controller.
            extra_listeners: Further listeners, for fault proxies.
            extra_config: Broker settings that override ours.
            heap_mb: Largest Java heap, in MiB.
            java_options: Further Java options.
            listener: Receives the progress of download and start.
        """
        super().__init__(KAFKA, data_dir, heap_mb, java_options, listener)
        self._wanted_port = port
        self._preferred_port = preferred_port
        self._wanted_controller_port = controller_port
        self._extra_listeners = tuple(extra_listeners)
        self._extra_config = dict(extra_config or {})
        self._ports: KafkaPorts | None = None

    @property
    def ports(self) -> KafkaPorts:
        if self._ports is None:
            raise BrickFailed(f"{self.release.title} was never started, so its ports are not chosen")
        return self._ports

    @property
    def port(self) -> int:
        return self.ports.clients

    @property
    def endpoint(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def bootstrap_servers(self) -> str:
        return self.endpoint

    def choose_ports(self) -> None:
        for asked in (self._wanted_port, self._wanted_controller_port, *(each.port for each in self._extra_listeners)):
            if asked is not None and not is_free(asked):
                raise PortTaken(f"port {asked} is taken, and {self.release.title} was to listen there")
        spoken_for = frozenset(each.port for each in self._extra_listeners)
        clients = self._wanted_port or free_port(self._preferred_port, avoid=spoken_for)
        controller = self._wanted_controller_port or free_port(avoid=spoken_for | {clients})
        self._ports = KafkaPorts(clients, controller)

    def arguments(self, java: Java, jars: Path) -> list[str]:
        logs = self.data_dir / "log"
        if "," in str(logs):
            raise BrickUnavailable(f"{self.data_dir} has a comma, at which Kafka splits", "choose another data folder")
        settings = self.data_dir / "server.properties"
        properties = server_properties(self.ports, logs, self._extra_listeners, self._extra_config)
        settings.write_text(render(properties), encoding="ascii")
        common = [f"-Dlog4j2.configurationFile={LOG_SETTINGS}", "-Djava.awt.headless=true", "-cp", f"{jars}/*"]
        format_storage(logs)
        return [*common, "kafka.Kafka", str(settings)]

    def answers(self) -> bool:
        # Compares the cluster id, because another broker could have taken the port.
        cluster_id = answering_cluster(self.endpoint)
        return cluster_id is not None and cluster_id == cluster_id_of(self.data_dir / "log")


def answering_cluster(bootstrap_servers: str) -> str | None:
    """Returns the cluster id of the one broker at `host:port`, or None if none answers, ready to lead, within a
    second.
    """
    host, _, port = bootstrap_servers.rpartition(":")
    try:
        # A plain connection first, because the client is slow to notice a port without a listener.
        socket.create_connection((host, int(port)), timeout=ASK_TIMEOUT_S).close()
        client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        metadata = client.list_topics(timeout=ASK_TIMEOUT_S)
    except (OSError, KafkaException):
        return None
    # A broker is in the list once the controller lets it lead topic partitions.
    return metadata.cluster_id if metadata.brokers else None
