"""Configuration of the local broker: one small node that is broker and controller and rebalances quickly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate_bricks.free_ports import LOOPBACK

#: Bytes. Topics choose a limit below this one; tidegate's largest records are its dead letters of 5 MiB.
MESSAGE_BYTES_MAX = 8 * 1024 * 1024
NODE_ID = 1
CLIENTS = "CLIENTS"
CONTROLLER = "CONTROLLER"


@dataclass(frozen=True, slots=True)
class ExtraListener:
    """A further listener, for clients that connect through a fault proxy.

    Kafka tells its clients where to connect, so a proxy needs a listener that announces the proxy's port.

    Attributes:
        name: Upper-case name, unique on the broker.
        port: Port of the broker, to which the proxy connects.
        announced_port: Port of the proxy, to which clients connect.
    """

    name: str
    port: int
    announced_port: int


@dataclass(frozen=True, slots=True)
class KafkaPorts:
    """Ports of one broker on the loopback interface."""

    clients: int
    controller: int


#: One node holds everything once. Few internal topic partitions, threads and buffers, because there are few clients.
SMALL = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "4",
    # The default reserves a quarter of our heap for compaction.
    "log.cleaner.dedupe.buffer.size": "8388608",
}

#: In a development stack members join and leave all day, and tests wait for it. So a rebalance waits for no further members, short
#: sessions are allowed, and the newer group protocol (KIP-848) sends heartbeats twice a second instead of every five.
QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
}

#: The controller refuses a killed broker until its earlier session has ended, and a paused broker loses its session.
QUICK_RETURN = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
}


def server_properties(
    ports: KafkaPorts,
    log_dir: Path,
    extra_listeners: Sequence[ExtraListener] = (),
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Returns the broker's configuration.

    Args:
        ports: Ports on the loopback interface.
        log_dir: Folder of its data; without a comma, at which Kafka splits.
        extra_listeners: Further listeners.
        extra: Settings that override all others.
    """
    names = [CLIENTS, *(listener.name for listener in extra_listeners)]
    listening = [(CLIENTS, ports.clients), *((listener.name, listener.port) for listener in extra_listeners)]
    announced = [(CLIENTS, ports.clients), *((each.name, each.announced_port) for each in extra_listeners)]
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.quorum.voters": f"{NODE_ID}@{LOOPBACK}:{ports.controller}",
        "listeners": _addresses([*listening, (CONTROLLER, ports.controller)]),
        "advertised.listeners": _addresses(announced),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in [*names, CONTROLLER]),
        "inter.broker.listener.name": CLIENTS,
        "controller.listener.names": CONTROLLER,
        "log.dirs": str(log_dir),
        # A mistyped name must be an error, not create a topic.
        "auto.create.topics.enable": "false",
        "message.max.bytes": str(MESSAGE_BYTES_MAX),
        **SMALL,
        **QUICK_GROUPS,
        **QUICK_RETURN,
        **(extra or {}),
    }


def render(properties: Mapping[str, str]) -> str:
    """Returns the text of a Java properties file, which is Latin-1 with escapes for all other characters."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(value: str) -> str:
    plain = value.replace("\\", "\\\\").replace("\n", "\\n")
    units = plain.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    text = "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)
    return f"\\{text}" if text.startswith(" ") else text


def _addresses(listeners: Sequence[tuple[str, int]]) -> str:
    return ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in listeners)
