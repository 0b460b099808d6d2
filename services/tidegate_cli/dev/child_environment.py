"""Environment of the processes of a stack: endpoints from the user's settings or from the local servers, ports, folders.

The user's settings pass through. Values set here override them, because they describe the processes that were started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tidegate_bricks.dynamodb_local import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY
from tidegate_bricks.free_ports import LOOPBACK, free_port
from tidegate_cli.dev.errors import SettingsWrong, StackFailed
from tidegate_cli.dev.options import SHARDS, TOPIC_PARTITIONS
from tidegate_cli.dev.stack_folder import StackFolder
from tidegate_ports.common.settings_file import CONFIG_VARIABLE, SettingsFileUnreadable, settings_document

KAFKA_VARIABLE = "TIDEGATE_KAFKA__BOOTSTRAP_SERVERS"
PLAINTEXT_VARIABLE = "TIDEGATE_KAFKA__ALLOW_PLAINTEXT"
DYNAMODB_VARIABLE = "TIDEGATE_DYNAMODB__ENDPOINT_URL"
API_PORT_VARIABLE = "TIDEGATE_API__PORT"
PORT_MAX = 65_535
SHOWN = 20
"""Characters of a wrong setting that an error repeats."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Kafka and DynamoDB endpoints from the user's settings; None means that a local server is started."""

    kafka: str | None
    dynamodb: str | None

    @property
    def all_given(self) -> bool:
        return self.kafka is not None and self.dynamodb is not None


def given_endpoints(environment: Mapping[str, str]) -> Endpoints:
    """Reads the endpoints from the environment, or from the YAML file that TIDEGATE_CONFIG names.

    Raises:
        SettingsWrong: The file cannot be read.
    """
    sections = _sections(environment)
    return Endpoints(
        kafka=environment.get(KAFKA_VARIABLE) or _text(sections, "kafka", "bootstrap_servers"),
        dynamodb=environment.get(DYNAMODB_VARIABLE) or _text(sections, "dynamodb", "endpoint_url"),
    )


def given_api_port(environment: Mapping[str, str]) -> int | None:
    """Reads the API's port from the environment, or from the YAML file; None if neither names one.

    Raises:
        SettingsWrong: The value is no port, or the file cannot be read.
    """
    given = environment.get(API_PORT_VARIABLE)
    if given:
        return _port(API_PORT_VARIABLE, given)
    fields = _sections(environment).get("api")
    found = fields.get("port") if isinstance(fields, Mapping) else None
    return None if found is None else _port(f"api.port in {environment[CONFIG_VARIABLE]}", found)


def _port(name: str, given: object) -> int:
    text = str(given)
    # The length is checked first, because Python refuses to convert a text of 5,000 digits.
    port = int(text) if len(text) <= len(str(PORT_MAX)) and text.isascii() and text.isdecimal() else 0
    if not 1 <= port <= PORT_MAX:
        raise SettingsWrong(f"{name} is {text[:SHOWN]!r}", f"choose a port from 1 to {PORT_MAX}")
    return port


def _sections(environment: Mapping[str, str]) -> Mapping[str, object]:
    path = environment.get(CONFIG_VARIABLE)
    try:
        document = settings_document(Path(path)) if path else {}
    except SettingsFileUnreadable as error:
        raise SettingsWrong(str(error)) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SettingsWrong(
            f"{path} holds a {type(document).__name__}", "write a mapping of sections, such as `api: {port: 8080}`"
        )
    return document


def _text(sections: Mapping[str, object], section: str, field: str) -> str | None:
    fields = sections.get(section)
    found = fields.get(field) if isinstance(fields, Mapping) else None
    return found if isinstance(found, str) and found else None


@dataclass(frozen=True, slots=True)
class Wiring:
    """Addresses, ports and folders that connect nodes, API, Kafka and DynamoDB.

    Attributes:
        local_kafka: Whether the broker is our own. It listens only on the loopback interface, without encryption.
        local_dynamodb: Whether the store is our DynamoDB Local. It needs credentials, but accepts any.
    """

    kafka: str
    dynamodb: str
    local_kafka: bool
    local_dynamodb: bool
    api_port: int
    node_ports: tuple[int, ...]
    folder: StackFolder
    settings: Mapping[str, str]

    @property
    def api_url(self) -> str:
        return f"http://{LOOPBACK}:{self.api_port}"

    def with_node_port(self, number: int, port: int) -> Wiring:
        ports = (*self.node_ports[: number - 1], port, *self.node_ports[number:])
        return replace(self, node_ports=ports)

    def node_url(self, number: int) -> str:
        """Returns the base URL of the health pages of node `number`; the first is 1."""
        return f"http://{LOOPBACK}:{self.node_ports[number - 1]}"

    def init_environment(self) -> dict[str, str]:
        return self._common() | {
            "TIDEGATE_SHARDS": str(SHARDS),
            "TIDEGATE_KAFKA__TOPIC_PARTITIONS": str(TOPIC_PARTITIONS),
        }

    def node_environment(self, number: int) -> dict[str, str]:
        return self._common() | {
            "TIDEGATE_NODE": f"node-{number}",
            "TIDEGATE_KAFKA__CLIENT_ID": f"tidegate-node-{number}",
            "TIDEGATE_GATE__URL": self.api_url,
            "TIDEGATE_HEALTH__HOST": LOOPBACK,
            "TIDEGATE_HEALTH__PORT": str(self.node_ports[number - 1]),
        }

    def api_environment(self) -> dict[str, str]:
        return self._common() | {
            "TIDEGATE_KAFKA__CLIENT_ID": "tidegate-api",
            "TIDEGATE_API__HOST": LOOPBACK,
            API_PORT_VARIABLE: str(self.api_port),
        }

    def _common(self) -> dict[str, str]:
        credentials = {
            "TIDEGATE_DYNAMODB__REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
        }
        return {
            **self.settings,
            **(credentials if self.local_dynamodb else {}),
            **({PLAINTEXT_VARIABLE: "true"} if self.local_kafka else {}),
            KAFKA_VARIABLE: self.kafka,
            DYNAMODB_VARIABLE: self.dynamodb,
            "TIDEGATE_GATE__SECRET_FILE": str(self.folder.gate_secret),
            "TIDEGATE_DATA_DIR": str(self.folder.path),
        }


def choose_port(usual: int, reserved: frozenset[int]) -> int:
    """Returns the usual port if it is free and not reserved, otherwise a random free port.

    Raises:
        StackFailed: There is no free port.
    """
    try:
        return free_port(usual, LOOPBACK, reserved)
    except OSError as error:
        raise StackFailed(str(error)) from error
