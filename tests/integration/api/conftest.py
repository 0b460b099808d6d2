"""A real broker, DynamoDB Local, and processes of the API and of a node, started by the command line as a user would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from tests.support.servers.cluster_servers import ClusterServers, as_guest
from tests.support.servers.servers import DynamoDbForTests, KafkaForTests
from tidegate_bricks.free_ports import free_port
from tidegate_client import Client

PATIENCE_S = 120.0
"""Deadline of every wait; the machine may be busy, a pass never takes it."""
LOOK_EVERY_S = 0.05
SHARDS = 16
SECRET = "a secret of more than thirty-two characters"
TIDEGATE = (sys.executable, "-m", "tidegate_cli.main")


def until(condition: Callable[[], Any], what: str) -> Any:
    """Polls until the condition says something true, and returns that."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if said := condition():
            return said
        time.sleep(LOOK_EVERY_S)
    pytest.fail(f"{what}: not within {PATIENCE_S:g} s")


@dataclass
class Stack:
    """Tables, topics and a map of one test's own, with its processes."""

    kafka: KafkaForTests
    environment: dict[str, str]
    folder: Path
    url: str
    prefix: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, **variables: str) -> subprocess.Popen[bytes]:
        """Starts `tidegate <name>`; its log is a file of the folder."""
        with (self.folder / f"{name}-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                [*TIDEGATE, name], env={**self.environment, **variables}, stdout=log, stderr=subprocess.STDOUT
            )
        self.processes.append(process)
        return process

    def log_of(self, process: subprocess.Popen[bytes]) -> str:
        """Returns what a process has printed so far."""
        (log,) = self.folder.glob(f"*-{self.processes.index(process)}.log")
        return log.read_text(encoding="utf-8", errors="replace")

    def start_api(self) -> subprocess.Popen[bytes]:
        process = self.start("api")
        until(lambda: _status(f"{self.url}/readyz") == 200, f"the API is ready; logs in {self.folder}")
        return process

    def start_node(self) -> subprocess.Popen[bytes]:
        """Starts a node that may choose its port, and waits until it serves all of its shards."""
        log = self.folder / f"node-{len(self.processes)}.log"
        process = self.start("node")
        until(lambda: _is_ready(log), f"the node is ready; logs in {self.folder}")
        return process

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs `tidegate <arguments>` to its end."""
        environment = {**self.environment, "TIDEGATE_API_URL": self.url}
        return subprocess.run(
            [*TIDEGATE, *arguments], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    def records(self, topic: str, count: int) -> list[tuple[Any, dict[str, bytes]]]:
        """Waits for so many messages on a topic: value as JSON, and headers. What is delivered again counts once (I8)."""
        settings = {
            "bootstrap.servers": self.kafka.bootstrap_servers,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
        }
        consumer = Consumer(settings)
        found: dict[bytes, tuple[Any, dict[str, bytes]]] = {}
        try:
            consumer.subscribe([topic])
            deadline = time.monotonic() + PATIENCE_S
            while len(found) < count and time.monotonic() < deadline:
                for message in consumer.consume(count, 0.2):
                    if message.error() is None:
                        # The client's stub allows lists of pairs only in words.
                        pairs: Any = message.headers() or []
                        headers = dict(pairs)
                        found[headers["tidegate-id"]] = (json.loads(message.value() or b"null"), headers)
        finally:
            consumer.close()
        return list(found.values())

    def make_topic(self) -> str:
        name = f"{self.prefix}.target"
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap_servers})
        admin.create_topics([NewTopic(name, num_partitions=2, replication_factor=1)])[name].result(PATIENCE_S)
        return name

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def guest_stack(servers: ClusterServers, folder: Path) -> Iterator[Stack]:
    """Yields a stack on shared servers, initialised by `tidegate init`; nothing runs yet."""
    port = free_port()
    secret = folder / "secret"
    secret.write_text(SECRET)
    url = f"http://127.0.0.1:{port}"
    ours: Mapping[str, str] = {
        **servers.variables(),
        "TIDEGATE_GATE__SECRET_FILE": str(secret),
        "TIDEGATE_GATE__URL": url,
        "TIDEGATE_DATA_DIR": str(folder / "data"),
        "TIDEGATE_HEALTH__PORT": "0",
        "TIDEGATE_API__PORT": str(port),
        "TIDEGATE_STATE_DIR": str(folder / "state"),
        "TIDEGATE_SHARDS": str(SHARDS),
    }
    (folder / "data").mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    # The pointer of a stack that this user may be running is none of the node's settings.
    settings = {name: value for name, value in ours.items() if name != "TIDEGATE_STATE_DIR"}
    stack = Stack(servers.kafka, {**inherited, **settings}, folder, url, servers.prefix)
    done = stack.command("init")
    assert done.returncode == 0, done.stderr + done.stdout
    try:
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="module")
def stack(
    kafka: KafkaForTests, dynamodb: DynamoDbForTests, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """One for all tests of a file; tests that share it have names of their own."""
    with guest_stack(as_guest(kafka, dynamodb), tmp_path_factory.mktemp("stack")) as stack:
        yield stack


@pytest.fixture(scope="module")
def client(stack: Stack) -> Iterator[Client]:
    """A client of the stack's API, which runs."""
    stack.start_api()
    with Client(stack.url) as client:
        yield client


@pytest.fixture(scope="module")
def node(stack: Stack) -> subprocess.Popen[bytes]:
    """A node of the stack that serves all of its shards."""
    return stack.start_node()


def _is_ready(log: Path) -> bool:
    """Whether the node that writes this log says so itself, at the port that the log tells."""
    listening = re.search(r'"port": (\d+), "event": "health_listening"', log.read_text(encoding="utf-8"))
    return listening is not None and _status(f"http://127.0.0.1:{listening[1]}/readyz") == 200


def _status(url: str) -> int:
    try:
        return httpx2.get(url, timeout=5, trust_env=False).status_code
    except httpx2.HTTPError:
        return 0
