"""Bulk requests and events for the cluster that is measured: many a second, without a book of each.

A request goes to the topic partition whose holder owns its shard, as the API sends it. What has neither id nor key belongs to whoever
reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from tests.support.cluster.message_load import instant
from tests.support.cluster.until import PATIENCE_S
from tidegate_core.language.values.derived_ids import message_shard, schedule_shard

NAMESPACE = "bench"
REQUESTS, EVENTS = "tidegate.requests", "tidegate.events"
LINGER_MS = 5
LIBRARY_CHOOSES = -1
"""What the library takes for "use your partitioner"."""
PAYLOAD_TEXT = "x" * 200
"""Of each message, beside its number: about what a small event in JSON has."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record that is ready to go.

    Attributes:
        shard: Whose owner deals with it; None where nobody knows.
    """

    value: bytes
    shard: int | None = None


class BulkProducer:
    """Produces as fast as the client library does, with acknowledgements by all replicas.

    Args:
        bootstrap_servers: Of the broker.
        topic_partitions: Of the requests topic.
    """

    def __init__(self, bootstrap_servers: str, topic_partitions: int) -> None:
        self._topic_partitions = topic_partitions
        self._failed: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": LINGER_MS,
                "queue.buffering.max.messages": 2_000_000,
                "delivery.report.only.error": True,  # The benchmark shares the cores with what it measures.
                "log_level": 0,
            }
        )

    def send(self, topic: str, records: Iterable[Outgoing]) -> None:
        """Produces all, and returns once the broker has them."""
        for record in records:
            place = LIBRARY_CHOOSES if record.shard is None else record.shard % self._topic_partitions
            while True:
                try:
                    self._producer.produce(topic, record.value, partition=place, on_delivery=self._answered)
                    break
                except BufferError:
                    self._producer.poll(0.1)
            self._producer.poll(0)
        assert self._producer.flush(PATIENCE_S) == 0, "the broker did not take everything"
        assert not self._failed, self._failed[:3]

    def _answered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(str(error))


def message(
    number: int, at: int, topic: str, shards: int, *, name: str | None, key: str | None = None, receipt: bool = False
) -> Outgoing:
    """Returns a one-shot message.

    Args:
        number: In its payload.
        at: When it is due, ms since the epoch.
        topic: Where it goes then.
        shards: Of the cluster.
        name: Request id; None for a message that nobody can name.
        key: The user's key, under which it can be replaced.
        receipt: Its acceptance is told, as the API asks of each.
    """
    document = message_document(number, at, topic, name=name, key=key, receipt=receipt)
    named = name is not None or key is not None
    shard = message_shard(NAMESPACE, key, name or "", shards) if named else None
    return Outgoing(json.dumps(document).encode(), shard)


def message_document(
    number: int, at: int, topic: str, *, name: str | None, key: str | None = None, receipt: bool = False
) -> dict[str, Any]:
    """Returns the same as the request's JSON object."""
    given = {"id": name, "key": key}
    return {
        "type": "message.send",
        "namespace": NAMESPACE,
        "topic": topic,
        "deliver_at": instant(at),
        "payload": {"number": number, "text": PAYLOAD_TEXT},
        "receipt": receipt,
        **{field: text for field, text in given.items() if text is not None},
    }


def apply(name: str, spec: Mapping[str, Any], shards: int) -> Outgoing:
    """Returns the request that applies a schedule."""
    whole = {"kind": "schedule", "namespace": NAMESPACE, "name": name, **spec}
    document = {"type": "schedule.apply", "namespace": NAMESPACE, "name": name, "spec": whole, "id": f"apply-{name}"}
    return Outgoing(json.dumps(document).encode(), schedule_shard(NAMESPACE, name, shards))


def delete(name: str, shards: int) -> Outgoing:
    """Returns the request that deletes a schedule."""
    document = {"type": "schedule.delete", "namespace": NAMESPACE, "name": name, "id": f"delete-{name}"}
    return Outgoing(json.dumps(document).encode(), schedule_shard(NAMESPACE, name, shards))


def event(identity: str, name: str, number: int | None = None) -> Outgoing:
    """Returns a custom event of the benchmark's namespace. With a number they go to the topic partitions in turn."""
    document = {"id": identity, "type": f"custom.{name}", "namespace": NAMESPACE, "data": {"text": PAYLOAD_TEXT}}
    return Outgoing(json.dumps(document).encode(), number)
