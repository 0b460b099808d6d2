"""A user of the cluster: sends requests and events over Kafka, and keeps what the broker acknowledged.

Its producer has the client library's default partitioner, unless a caller wants a certain topic partition: the cluster must
not care.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.support.cluster.background import Background
from tests.support.cluster.topic_reader import CLOCK, TopicWatcher, reach_of
from tests.support.cluster.until import PATIENCE_S, until
from tidegate_kafka.clients.connectivity import CutOff

SEND_TIMEOUT_MS = 120_000
"""Longer than an outage of the broker in these tests: what was sent into one is acknowledged after it."""
POLL_S = 0.1
PURGE_S_MAX = 2.0
ASK_S = 2.0
"""For topic partitions that a topic has by now."""
LIBRARY_CHOOSES = -1
"""What the library takes for "use your partitioner"."""
RECORD_BYTES_MAX = 6 * 1024 * 1024
"""The client's own limit, above the topics' (4 MiB), so that the cluster is what refuses."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A record that the broker has.

    Attributes:
        appended_at: The broker's append time, ms since the epoch.
    """

    topic: str
    topic_partition: int
    offset: int
    appended_at: int


class Client(Background):
    """Sends, and writes each acknowledgement to its log before anybody may rely on it.

    Args:
        bootstrap_servers: Of the broker.
        log: File for its acknowledgements, a JSON object a line.
        prefix: Of the cluster's topics.

    Attributes:
        failed: How many records went without an acknowledgement, in time or with a client that was replaced.
    """

    def __init__(self, bootstrap_servers: str, log: Path, prefix: str = "tidegate") -> None:
        super().__init__("client")
        self._prefix = prefix
        self._bootstrap_servers = bootstrap_servers
        self._producer = _producer(bootstrap_servers)
        self.failed = 0
        self._acknowledged = False
        self._may_request = threading.RLock()
        self._log = log.open("a", encoding="utf-8")
        # Acknowledgements come from the serving thread and from whoever flushes.
        self._writing = threading.Lock()
        self._receipts = TopicWatcher(bootstrap_servers, f"{prefix}.receipts")
        self._seen = 0
        # Several threads look: what each reads of the receipts is read once.
        self._looking = threading.Lock()
        self._by_request: dict[str, dict[str, Any]] = {}
        self._answered_at: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._receipts.__enter__()
        return super().__enter__()

    def close(self) -> None:
        self._receipts.__exit__(None, None, None)
        self._log.close()

    # -- sending ------------------------------------------------------------------------------------------------------

    @contextmanager
    def without_requests(self) -> Iterator[None]:
        """Whoever sends a request meanwhile waits; what was sent before has arrived."""
        with self._may_request:
            self.flush()
            yield

    def send(
        self,
        topic: str,
        value: bytes | Mapping[str, Any],
        key: str | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
        topic_partition: int | None = None,
        on_acknowledged: Callable[[Acknowledged], None] = lambda _: None,
    ) -> None:
        """Sends one record to a tidegate topic; `on_acknowledged` is called from another thread once the broker has it."""
        self.send_to(f"{self._prefix}.{topic}", value, key, headers, topic_partition, on_acknowledged)

    def send_to(
        self,
        topic: str,
        value: bytes | Mapping[str, Any],
        key: str | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
        topic_partition: int | None = None,
        on_acknowledged: Callable[[Acknowledged], None] = lambda _: None,
    ) -> None:
        """As `send`, to any topic by its full name."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                with self._writing:
                    self.failed += 1
                return
            self._acknowledged = True
            acknowledged = _acknowledged(message)
            self._write_down(acknowledged, value)
            on_acknowledged(acknowledged)

        partition = LIBRARY_CHOOSES if topic_partition is None else topic_partition
        with self._may_request if topic == f"{self._prefix}.requests" else nullcontext():

            def is_taken() -> bool:
                try:
                    self._producer.produce(
                        topic, body, key, partition=partition, headers=list(headers), on_delivery=delivered
                    )
                except KafkaException as refused:
                    if refused.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                        raise
                    # Added since the library was told of the topic: by itself it asks every few minutes.
                    with suppress(KafkaException):
                        self._producer.list_topics(topic, ASK_S)
                    return False
                return True

            until(is_taken, f"the client knows topic partition {partition} of {topic}")

    def flush(self, patience_s: float = PATIENCE_S) -> None:
        """Waits until the broker has everything, but for what went with a client that had lost the broker: nobody acknowledged that."""
        assert self._producer.flush(patience_s) == 0, "the broker did not take everything"

    # -- requests -----------------------------------------------------------------------------------------------------

    def request(self, request: Mapping[str, Any], key: str | None = None, patience_s: float = PATIENCE_S) -> Any:
        """Sends a request, with an id where it has none, and returns its receipt."""
        (receipt,) = self.request_all([request], key, patience_s)
        return receipt

    def request_all(
        self, requests: Sequence[Mapping[str, Any]], key: str | None = None, patience_s: float = PATIENCE_S
    ) -> list[Any]:
        """As `request`, of all of them at once."""
        documents = [{"id": uuid.uuid4().hex, **request} for request in requests]
        for document in documents:
            self.send("requests", document, key)
        return [self.receipt(document["id"], patience_s) for document in documents]

    def apply(self, spec: Mapping[str, Any], **envelope: Any) -> Any:
        """Applies a schedule; returns the receipt."""
        return self.request({**apply_of(spec), **envelope})

    def receipt(self, request_id: str, patience_s: float = PATIENCE_S) -> Any:
        """Waits for the receipt of a request; returns it as it stands on the topic."""
        return until(lambda: self.receipts().get(request_id), f"receipt of {request_id}", patience_s)

    def receipts(self) -> Mapping[str, dict[str, Any]]:
        """Returns the first receipt of each request so far."""
        with self._looking:
            for arrived in self._receipts.records[self._seen :]:
                self._seen += 1
                document = arrived.document
                self._by_request.setdefault(document["request_id"], document)
                self._answered_at.setdefault(document["request_id"], arrived.appended_at)
        return self._by_request

    def answered_at(self) -> Mapping[str, int]:
        """Returns when the first receipt of each request so far was appended, ms since the epoch."""
        self.receipts()
        return self._answered_at

    def run(self) -> None:
        reach = reach_of(self._bootstrap_servers)
        while not self.stopping.is_set():
            self._producer.poll(POLL_S)
            if self._acknowledged:
                self._acknowledged = False
                reach.heard(CLOCK.monotonic_ms())
            elif len(self._producer) or reach.suspects:
                try:
                    reach.look(self._producer, CLOCK.monotonic_ms())
                except CutOff:
                    former, self._producer = self._producer, _producer(self._bootstrap_servers)
                    reach = reach_of(self._bootstrap_servers)
                    former.purge()
                    former.flush(PURGE_S_MAX)

    def _write_down(self, acknowledged: Acknowledged, value: bytes | Mapping[str, Any]) -> None:
        sent = f"{len(value)} bytes" if isinstance(value, bytes) else value
        with self._writing:
            self._log.write(json.dumps({**asdict(acknowledged), "sent": sent}) + "\n")
            self._log.flush()


def apply_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the request that applies a schedule."""
    return {
        "type": "schedule.apply",
        "namespace": spec["namespace"],
        "name": spec["name"],
        "spec": {"kind": "schedule", **spec},
    }


def _producer(bootstrap_servers: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            "message.timeout.ms": SEND_TIMEOUT_MS,
            "message.max.bytes": RECORD_BYTES_MAX,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
    )


def _acknowledged(message: Message) -> Acknowledged:
    topic, topic_partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert topic_partition is not None
    assert offset is not None
    return Acknowledged(topic, topic_partition, offset, message.timestamp()[1])
