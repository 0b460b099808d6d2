"""End of the demo: sends a one-shot message about the report, and reads it from its topic."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from tidegate_cli.demo.demo_plan import NAMESPACE
from tidegate_cli.dev.errors import StackFailed
from tidegate_client.client import Client
from tidegate_core.language.values.instants import format_instant, from_datetime

TOPIC = "flights.reports"
DELAY = timedelta(seconds=3)
"""Delay of the message: not at once, but short enough to wait for."""

PATIENCE_S = 30.0
ADMIN_TIMEOUT_S = 10.0
POLL_TIMEOUT_S = 0.25


@dataclass(frozen=True, slots=True)
class Delivered:
    """The record that was read from the topic.

    Attributes:
        due: Requested delivery time.
        lateness_ms: Milliseconds from `due` to the broker's append; a negative value means that the message was early.
    """

    id: str
    payload: dict[str, Any]
    due: datetime
    lateness_ms: int


def make_topic(bootstrap_servers: str) -> None:
    """Creates the topic of the announcement, because the broker does not create topics automatically.

    Raises:
        StackFailed: The broker refuses.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    # Lateness is measured by the broker's append time.
    topic = NewTopic(TOPIC, num_partitions=1, config={"message.timestamp.type": "LogAppendTime"})
    try:
        admin.create_topics([topic])[TOPIC].result(ADMIN_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise StackFailed(f"topic {TOPIC}: {error.args[0].str()}") from error


def announce(client: Client, bootstrap_servers: str, payload: dict[str, Any]) -> Delivered:
    """Sends the message with a delay of a few seconds, and returns it once it was read from the topic.

    Raises:
        StackFailed: The message did not arrive.
    """
    due = (datetime.now(UTC) + DELAY).replace(microsecond=0)
    receipt = client.send_message(
        namespace=NAMESPACE,
        key="report",
        deliver_at=format_instant(from_datetime(due)),
        topic=TOPIC,
        message_key="report",
        payload=payload,
    )
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "demo", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        return _first(consumer, receipt.id, due)
    finally:
        consumer.close()


def _first(consumer: Consumer, message_id: str | None, due: datetime) -> Delivered:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        record = consumer.poll(POLL_TIMEOUT_S)
        if record is None or record.error() is not None:
            continue
        headers = dict(record.headers() or [])
        found = _text(headers.get("tidegate-id"))
        if message_id is not None and found != message_id:
            continue
        appended_ms = record.timestamp()[1]
        return Delivered(found, json.loads(record.value() or b"{}"), due, appended_ms - from_datetime(due))
    raise StackFailed(f"the announcement did not arrive on {TOPIC} within {PATIENCE_S:g} s")


def _text(header: object) -> str:
    return header.decode() if isinstance(header, bytes) else str(header)
