"""Kafka and DynamoDB Local as containers, for machines where a Docker engine answers. Called by `servers.py`.

The library is imported late: without a Docker engine nobody has to have it. Not promised: outages. A container's broker
cannot be stopped and continued through this module; tests that need that bring up their own local bricks.
"""

import functools
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, Self

from tidegate_bricks.broker_config import CLIENTS, CONTROLLER, KafkaPorts, server_properties
from tidegate_bricks.dynamodb_local import answers_list_tables
from tidegate_bricks.free_ports import free_port
from tidegate_bricks.kafka_broker import answering_cluster

KAFKA_IMAGE = "apache/kafka:4.1.1"
DYNAMODB_IMAGE = "amazon/dynamodb-local:2.6.1"
ENGINE_SOCKET = Path("/var/run/docker.sock")
KAFKA_PORT, CONTROLLER_PORT, DYNAMODB_PORT = 9092, 9093, 8000
#: An engine on this machine answers in milliseconds. Seconds.
PING_TIMEOUT_S = 3
#: From the start of a container, its image already pulled, to its answer. Seconds.
READY_TIMEOUT_S = 90.0
READY_POLL_INTERVAL_S = 0.1


class Container(Protocol):
    """What is used of a testcontainers container."""

    def with_bind_ports(self, container: int, host: int, /) -> Self: ...

    def with_env(self, key: str, value: str, /) -> Self: ...

    def with_command(self, command: str, /) -> Self: ...

    def start(self) -> Self: ...

    def stop(self) -> None: ...

    def get_container_host_ip(self) -> str: ...


class Containers:
    """Starts the two bricks as containers."""

    def __init__(self, container_of: Callable[[str], Container]) -> None:
        """Takes a function that makes a container, not yet started, of an image."""
        self._container_of = container_of

    @contextmanager
    def kafka(self) -> Iterator[str]:
        """Yields the bootstrap servers of a broker with the same settings as the local one."""
        port = free_port()
        container = self._container_of(KAFKA_IMAGE).with_bind_ports(KAFKA_PORT, port)
        # Known before the start, since the broker tells its clients this name.
        endpoint = f"{container.get_container_host_ip()}:{port}"
        for name, value in kafka_environment(endpoint).items():
            container = container.with_env(name, value)
        with _running(container, lambda: answering_cluster(endpoint) is not None, KAFKA_IMAGE):
            yield endpoint

    @contextmanager
    def dynamodb(self) -> Iterator[str]:
        """Yields the endpoint URL of a DynamoDB Local in memory."""
        port = free_port()
        container = self._container_of(DYNAMODB_IMAGE).with_bind_ports(DYNAMODB_PORT, port)
        container = container.with_command("-jar DynamoDBLocal.jar -inMemory -sharedDb -disableTelemetry")
        host = container.get_container_host_ip()
        with _running(container, lambda: answers_list_tables(host, port), DYNAMODB_IMAGE):
            yield f"http://{host}:{port}"


@functools.cache
def find_containers() -> Containers | None:
    """Returns the containers where a Docker engine answers; otherwise says once why they are skipped."""
    return containers_or_reason(_import_library, say=_say)


def containers_or_reason(
    import_library: Callable[[], tuple[Callable[[], object], Callable[[str], Container]]], say: Callable[[str], None]
) -> Containers | None:
    """Asks the Docker engine whether it is there.

    Args:
        import_library: Returns a function that asks the engine (and raises where it does not answer), and one that makes
            containers; raises ImportError where the library is missing.
        say: Told in one line why containers are skipped.
    """
    try:
        ping, container_of = import_library()
        ping()
    except ImportError as missing:
        say(f"containers skipped: {missing.name or 'testcontainers'} is not installed; using local jars")
        return None
    except Exception as refusal:  # noqa: BLE001 - the client has a dozen ways to say that there is no engine
        say(f"containers skipped: no Docker engine answers ({type(refusal).__name__}); using local jars")
        return None
    return Containers(container_of)


def kafka_environment(endpoint: str) -> Mapping[str, str]:
    """Returns the image's environment for the local broker's settings, announced as `endpoint`."""
    properties = server_properties(KafkaPorts(KAFKA_PORT, CONTROLLER_PORT), Path("/tmp/kraft-combined-logs"))
    properties |= {
        "listeners": f"{CLIENTS}://0.0.0.0:{KAFKA_PORT},{CONTROLLER}://127.0.0.1:{CONTROLLER_PORT}",
        "advertised.listeners": f"{CLIENTS}://{endpoint}",
    }
    return {f"KAFKA_{name.upper().replace('.', '_')}": value for name, value in properties.items()}


@contextmanager
def _running(container: Container, answers: Callable[[], bool], image: str) -> Iterator[None]:
    container.start()
    try:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not answers():
            if time.monotonic() >= deadline:
                raise TimeoutError(f"a container of {image} did not answer within {READY_TIMEOUT_S:.0f} s")
            time.sleep(READY_POLL_INTERVAL_S)
        yield
    finally:
        container.stop()


def _import_library() -> tuple[Callable[[], object], Callable[[str], Container]]:
    # By name, since the Docker client comes without types.
    if "DOCKER_HOST" not in os.environ and not ENGINE_SOCKET.exists():
        # Not even asked: the client leaves its socket open when nobody answers, and a leak fails a test.
        raise ConnectionRefusedError(f"there is no {ENGINE_SOCKET}")
    docker = importlib.import_module("docker")
    containers = importlib.import_module("testcontainers.core.container")
    return (lambda: _ping(docker.from_env(timeout=PING_TIMEOUT_S))), containers.DockerContainer


class _Engine(Protocol):
    def ping(self) -> object: ...

    def close(self) -> None: ...


def _ping(engine: _Engine) -> None:
    try:
        engine.ping()
    finally:
        engine.close()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
