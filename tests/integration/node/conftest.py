"""A real broker, DynamoDB Local, node processes, and a gate: enough of a cluster to see what a node does."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.chaos.rig import stepped_clock_node
from tests.support.cluster.topic_reader import make_topic
from tests.support.servers.cluster_servers import ClusterServers, as_guest
from tests.support.servers.servers import DynamoDbForTests, KafkaForTests
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Committed, Unavailable
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.writes.start_gate import finish_run, report_outputs, start_run, was_finished_by, was_overtaken
from tidegate_dynamo.client_factory import make_client
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store import DynamoStore
from tidegate_dynamo.transaction_sender import carry_out
from tidegate_node.bootstrap import Settings, initialise, load
from tidegate_ports.common.run_tokens import run_token

PATIENCE_S = 120.0
"""Deadline of every wait; the machine may be busy, a pass never takes it."""
LOOK_EVERY_S = 0.05
SHARDS = 16
SECRET = b"a secret of more than thirty-two characters"


def until(
    condition: Callable[[], Any],
    what: str,
    patience_s: float = PATIENCE_S,
    detail: Callable[[], object] = lambda: "",
) -> Any:
    """Polls until the condition says something true, and returns that."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if said := condition():
            return said
        time.sleep(LOOK_EVERY_S)
    pytest.fail(f"{what}: not within {patience_s:g} s {detail()}")


@dataclass
class NodeProcess:
    """A node of its own process, with its log in a file."""

    process: subprocess.Popen[bytes]
    log: Path

    def events(self, *names: str) -> list[Mapping[str, Any]]:
        """Logged events of those names, as they were written."""
        # A line without its end is being written.
        lines = [line for line in self.log.read_bytes().splitlines(keepends=True) if line.endswith(b"}\n")]
        found = [json.loads(line) for line in lines if line.startswith(b"{")]
        return [event for event in found if event["event"] in names]

    @property
    def health(self) -> str:
        (event,) = until(lambda: self.events("health_listening"), "health")
        return f"http://127.0.0.1:{event['port']}"

    def ask(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.health + path, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()

    def metric(self, name: str) -> float:
        """Sum over the labels of one metric."""
        lines = [line for line in self.ask("/metrics")[1].splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def until_serving(self, count: int) -> None:
        def serving() -> bool:
            assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
            return self.ask("/readyz")[0] == 200 and self.metric("tidegate_serving_shards") == count

        until(serving, f"{count} shards serving")

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def ends(self) -> int:
        """Waits until it ends by itself, and returns its exit status."""
        return self.process.wait(PATIENCE_S)


class Sent(NamedTuple):
    """A record: its value as JSON (or raw text), and when the broker appended it, ms since the epoch."""

    value: dict[str, Any]
    headers: dict[str, bytes]
    at: int


@dataclass
class Cluster:
    """Tables, topics and a map of one test's own; its nodes are ended with it."""

    settings: Settings
    environment: dict[str, str]
    folder: Path
    nodes: list[NodeProcess] = field(default_factory=list)
    shards: int = SHARDS
    _refused: list[NodeProcess] = field(default_factory=list)

    def start_node(self, **variables: str) -> NodeProcess:
        return self._start(["tidegate_node"], variables)

    def refused(self, node: NodeProcess) -> NodeProcess:
        """Notes that the test is about the end of a node: `until` does not take it for one that has died."""
        self.nodes.remove(node)
        self._refused.append(node)
        return node

    def start_workers(self, count: int) -> NodeProcess:
        """Starts several nodes by one command; what they log is in one file."""
        return self._start(["tidegate_cli.main", "node", "--workers", str(count)], {})

    def start_node_ahead(self, by_ms: int) -> NodeProcess:
        """Starts a node whose machine's wall clock is ahead."""
        clock = self.folder / f"node-{len(self.nodes)}.clock"
        clock.write_text(str(by_ms))
        return self._start([stepped_clock_node.__name__, "node"], {stepped_clock_node.VARIABLE: str(clock)})

    def _start(self, command: Sequence[str], variables: Mapping[str, str]) -> NodeProcess:
        name = f"node-{len(self.nodes) + len(self._refused)}"
        log = self.folder / f"{name}.log"
        environment = {**os.environ, **self.environment, "TIDEGATE_NODE": name, **variables}
        with log.open("wb") as out:
            process = subprocess.Popen([sys.executable, "-m", *command], env=environment, stderr=out, stdout=out)
        self.nodes.append(NodeProcess(process, log))
        return self.nodes[-1]

    def send(self, topic: str, document: Mapping[str, Any] | bytes, key: str | None = None) -> None:
        """Produces one record, anywhere."""
        producer = Producer({"bootstrap.servers": self.settings.kafka.bootstrap_servers})
        value = document if isinstance(document, bytes) else json.dumps(document).encode()
        producer.produce(self.settings.kafka.topic(topic), value, key)
        assert producer.flush(PATIENCE_S) == 0

    def records(self, topic: str) -> list[Sent]:
        """All records of a topic so far."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.settings.kafka.bootstrap_servers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        full = topic if topic.startswith(self.settings.kafka.topic_prefix) else self.settings.kafka.topic(topic)
        try:
            left = set(consumer.list_topics(full, PATIENCE_S).topics[full].partitions)
            consumer.assign([TopicPartition(full, number, OFFSET_BEGINNING) for number in left])
            found: list[Sent] = []
            # Each by itself: one that is written to meanwhile comes to its end again and again.
            while left:
                message = consumer.poll(PATIENCE_S)
                assert message is not None
                if (error := message.error()) is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        left.discard(message.partition())
                    continue
                headers = {name: bytes(text or b"") for name, text in _headers(message)}
                found.append(Sent(_document(message.value() or b""), headers, message.timestamp()[1]))
            return found
        finally:
            consumer.close()

    def until(
        self,
        condition: Callable[[], Any],
        what: str,
        patience_s: float = PATIENCE_S,
        detail: Callable[[], object] = lambda: "",
    ) -> Any:
        """Waits until the condition says something true; fails at once when a node has died by itself."""

        def looked() -> Any:
            for node in self.nodes:
                assert node.process.poll() in (None, 0, -signal.SIGKILL), node.log.read_text(encoding="utf-8")
            return condition()

        return until(looked, what, patience_s, detail)

    def apply(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Applies a schedule by a record and waits for the receipt."""
        request = {
            "id": str(uuid.uuid4()),
            "type": "schedule.apply",
            "namespace": spec["namespace"],
            "name": spec["name"],
            "spec": {"kind": "schedule", **spec},
        }
        self.send("requests", request)
        return self.receipt(request["id"])

    def remove_records(self, topic: str) -> None:
        """Empties a topic from its front, as retention does."""
        full = self.settings.kafka.topic(topic)
        admin = AdminClient({"bootstrap.servers": self.settings.kafka.bootstrap_servers})
        count = len(admin.list_topics(full, PATIENCE_S).topics[full].partitions)
        ends = [TopicPartition(full, number, OFFSET_END) for number in range(count)]
        for removed in admin.delete_records(ends).values():
            removed.result(PATIENCE_S)

    def make_topic(self, name: str) -> str:
        full = f"{self.settings.kafka.topic_prefix}.{name}"
        make_topic(self.settings.kafka.bootstrap_servers, full, 2)
        return full

    def receipt(self, request_id: str) -> dict[str, Any]:
        """Waits for the receipt of a request."""

        def found() -> dict[str, Any] | None:
            return next(
                (each.value for each in self.records("receipts") if each.value["request_id"] == request_id), None
            )

        receipt: dict[str, Any] = until(found, f"receipt of {request_id}")
        return receipt

    def runs(self, state: str, schedule: str | None = None) -> list[dict[str, Any]]:
        """Returns the records of runs in a state, of one schedule or of all."""
        runs = [each.value for each in self.records("runs") if each.value["state"] == state]
        return [run for run in runs if schedule in (None, run["schedule"])]

    def program(self, text: str) -> Path:
        file = self.folder / f"program-{uuid.uuid4().hex}.py"
        file.write_text(text, encoding="utf-8")
        return file

    def close(self) -> None:
        for node in (*self.nodes, *self._refused):
            if node.process.poll() is None:
                node.process.kill()
            node.process.wait()

    def store(self) -> DynamoStore:
        section = self.settings.dynamodb
        settings = DynamoSettings(
            endpoint_url=section.endpoint_url, table_prefix=section.table_prefix, read_timeout_s=section.read_timeout_s
        )
        return DynamoStore(make_client(settings).items, settings)


@contextmanager
def start_gate(settings: Settings) -> Iterator[str]:
    """A start gate on the store, as the API process has it; yields its URL."""
    section = settings.dynamodb
    dynamo = DynamoSettings(endpoint_url=section.endpoint_url, table_prefix=section.table_prefix)
    store = DynamoStore(make_client(dynamo).items, dynamo)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            run_id, action = self.path.split("/")[-2:]
            token = run_token(SECRET, run_id, body["attempt"])
            status = 401
            if self.headers["Authorization"] == f"Bearer {token}":
                status = _gate_status(store, action, run_id, body)
            said = {"run_id": run_id} if status == 200 else {"type": "urn:tidegate:problem:test"}
            answer = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            """Tests look at the store."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def guest_cluster(servers: ClusterServers, folder: Path) -> Iterator[Cluster]:
    """Yields a guest on shared servers without tables, topics and a map; its nodes end with it."""
    secret = folder / "secret"
    secret.write_bytes(SECRET)
    environment = {
        **servers.variables(),
        "TIDEGATE_KAFKA__TOPIC_PARTITIONS": "4",
        "TIDEGATE_GATE__SECRET_FILE": str(secret),
        "TIDEGATE_DATA_DIR": str(folder / "data"),
        "TIDEGATE_HEALTH__PORT": "0",
        "TIDEGATE_MINIMUM_PERIOD_MS": "1000",
    }
    of_the_test = {
        # What a test itself asks has more time than what its processes do.
        "TIDEGATE_KAFKA__ANSWER_MS_MAX": "20000",
        "TIDEGATE_DYNAMODB__READ_TIMEOUT_S": "30",
        "TIDEGATE_SHARDS": str(SHARDS),
    }
    settings = load({name: text for name, text in (environment | of_the_test).items() if name.startswith("TIDEGATE_")})
    with start_gate(settings) as gate:
        of_processes = {"TIDEGATE_GATE__URL": gate, "TIDEGATE_LOG__FORMAT": "json", "TIDEGATE_LOG__LEVEL": "debug"}
        cluster = Cluster(settings, environment | of_processes, folder)
        try:
            yield cluster
        finally:
            cluster.close()


@pytest.fixture
def new_cluster(kafka: KafkaForTests, dynamodb: DynamoDbForTests, tmp_path: Path) -> Iterator[Cluster]:
    """Without tables, topics and a map."""
    with guest_cluster(as_guest(kafka, dynamodb), tmp_path) as cluster:
        yield cluster


@pytest.fixture
def cluster(new_cluster: Cluster) -> Cluster:
    assert initialise(new_cluster.settings) == []
    return new_cluster


@pytest.fixture(scope="module")
def serving(
    kafka: KafkaForTests, dynamodb: DynamoDbForTests, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster with one node that serves, for all tests of a file that leave both as they are: each has names of its own."""
    with guest_cluster(as_guest(kafka, dynamodb), tmp_path_factory.mktemp("serving")) as cluster:
        assert initialise(cluster.settings) == []
        cluster.start_node().until_serving(cluster.shards)
        yield cluster


def answers(url: str) -> bool:
    """Whether an API process that listens there is ready."""
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=PATIENCE_S) as page:
            return bool(page.status == 200)
    except OSError:  # An answer other than 2xx is one, too.
        return False


def _gate_status(store: DynamoStore, action: str, run_id: str, body: Mapping[str, Any]) -> int:
    now, token = time.time_ns() // 1_000_000, str(uuid.uuid4())
    attempt, driver = body["attempt"], body["driver"]
    transaction: Transaction
    match action:
        case "start":
            transaction = start_run(run_id, attempt, driver, now, token)
        case "outputs":
            transaction = report_outputs(run_id, attempt, driver, json.dumps(body["outputs"]), body.get("seq"), token)
        case "finished":
            outputs = json.dumps(body["outputs"]) if body.get("outputs") else None
            transaction = finish_run(
                run_id,
                attempt,
                driver,
                body["outcome"],
                body.get("exit_code"),
                body.get("reason"),
                body.get("error_class"),
                outputs,
                now,
                token,
            )
        case _:
            return 409
    verdict = carry_out(store, transaction, lambda milliseconds: time.sleep(milliseconds / 1000), random.random)
    if isinstance(verdict, Unavailable):
        return 503
    key = keys.run(keys.shard_of_run(run_id), run_id)
    item = store.get([key]).get(key)
    # A program that waited in vain for an answer reports once more.
    repeats = {
        "outputs": was_overtaken(item, attempt, driver, body.get("seq")),
        "finished": was_finished_by(item, attempt, driver, str(body.get("outcome"))),
    }
    return 200 if isinstance(verdict, Committed) or item is None or repeats.get(action) else 409


def _headers(message: Message) -> list[tuple[str, bytes]]:
    headers: Any = message.headers() or []
    return list(headers.items() if isinstance(headers, dict) else headers)


def _document(value: bytes) -> dict[str, Any]:
    try:
        document = json.loads(value)
    except ValueError:
        return {"raw": value.decode(errors="replace")}
    return document if isinstance(document, dict) else {"raw": document}
