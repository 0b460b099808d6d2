"""Where tests get a real Kafka and a real DynamoDB API from: named endpoints, else containers, else local jars.

These are context managers and not fixtures, so that each suite wraps them in a fixture of the scope that it needs:

    @pytest.fixture(scope="session")
    def kafka() -> Iterator[KafkaForTests]:
        with kafka_for_tests() as running:
            yield running

One server serves a whole session; tests keep apart by names of their own for topics, groups and tables.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers.class_archives import archive_kafkas_classes
from tests.support.servers.containers import Containers, find_containers
from tidegate_bricks.dynamodb_local import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, DynamoDbBrick
from tidegate_bricks.java_server import JavaServer
from tidegate_bricks.kafka_broker import KafkaBrick
from tidegate_bricks.local_server import Brick

KAFKA_VARIABLE = "TIDEGATE_TEST_KAFKA"
DYNAMODB_VARIABLE = "TIDEGATE_TEST_DYNAMODB"
PATIENCE_S = 60.0
"""Deadline of every wait; a pass never takes it."""
STOPPED = "T"
"""A thread's state in Linux's `/proc/PID/task/TID/stat`."""


@dataclass(frozen=True, slots=True)
class KafkaForTests:
    """A broker that answers.

    Attributes:
        bootstrap_servers: `host:port`.
        brick: To stop, kill, pause and start it; None where it runs elsewhere or in a container.
    """

    bootstrap_servers: str
    brick: Brick | None = None


@dataclass(frozen=True, slots=True)
class DynamoDbForTests:
    """A DynamoDB API that answers, with what a client needs.

    Attributes:
        endpoint_url: `http://host:port`.
        brick: To stop, kill, pause and start it (in memory: a stop loses its tables); None where it is not ours.
        region: For the client.
        access_key_id: Letters and digits, as DynamoDB Local wants it; the environment's own for a named endpoint.
        secret_access_key: Likewise.
    """

    endpoint_url: str
    brick: Brick | None = None
    region: str = REGION
    access_key_id: str = ACCESS_KEY_ID
    secret_access_key: str = SECRET_ACCESS_KEY


@contextmanager
def kafka_for_tests(
    environment: Mapping[str, str] | None = None, containers: Containers | None = None
) -> Iterator[KafkaForTests]:
    """Yields a broker, its topics as earlier users of the same named endpoint left them, otherwise empty.

    Args:
        environment: Where `TIDEGATE_TEST_KAFKA` is read; the process's own by default.
        containers: Used instead of asking for a Docker engine.

    Raises:
        BrickUnavailable: Nothing is named, no Docker engine answers and local jars cannot be had.
    """
    named = (os.environ if environment is None else environment).get(KAFKA_VARIABLE)
    if named:
        yield KafkaForTests(named)
    elif (available := containers or find_containers()) is not None:
        with available.kafka() as endpoint:
            yield KafkaForTests(endpoint)
    else:
        archive_kafkas_classes()
        with KafkaBrick(None) as brick:
            yield KafkaForTests(brick.bootstrap_servers, brick)


@contextmanager
def dynamodb_for_tests(
    environment: Mapping[str, str] | None = None, containers: Containers | None = None
) -> Iterator[DynamoDbForTests]:
    """Yields a DynamoDB API, its tables as earlier users of the same named endpoint left them, otherwise none.

    Args:
        environment: Where `TIDEGATE_TEST_DYNAMODB` and the usual `AWS_…` are read; the process's own by default.
        containers: Used instead of asking for a Docker engine.

    Raises:
        BrickUnavailable: Nothing is named, no Docker engine answers and local jars cannot be had.
    """
    variables = os.environ if environment is None else environment
    if named := variables.get(DYNAMODB_VARIABLE):
        yield _named_dynamodb(named, variables)
    elif (available := containers or find_containers()) is not None:
        with available.dynamodb() as endpoint:
            yield DynamoDbForTests(endpoint)
    else:
        with DynamoDbBrick(None) as brick:
            yield DynamoDbForTests(brick.endpoint, brick)


def stand_still(server: JavaServer) -> None:
    """Pauses a server, and returns once it stands: the order goes through its guard, and on a busy machine it answers for a while yet.

    Where there is no `/proc`, nobody can tell.
    """
    server.pause()
    threads = Path(f"/proc/{server.pid}/task")
    deadline = time.monotonic() + PATIENCE_S
    while threads.exists() and not all(_state_of(thread) == STOPPED for thread in threads.iterdir()):
        assert time.monotonic() < deadline, f"{server.name} does not stand still"
        time.sleep(0.01)


def _state_of(thread: Path) -> str:
    """One that has ended since it was listed stands."""
    try:
        return (thread / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return STOPPED


def _named_dynamodb(endpoint: str, variables: Mapping[str, str]) -> DynamoDbForTests:
    return DynamoDbForTests(
        endpoint,
        region=variables.get("AWS_REGION", REGION),
        access_key_id=variables.get("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID),
        secret_access_key=variables.get("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY),
    )
