"""One read of a batch of messages; both consumers use it."""

from __future__ import annotations

from confluent_kafka import Message

from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.partition_flows import Client

MS = 1000


def read_batch(client: Client, settings: KafkaSettings) -> list[Message]:
    """Waits for a first message and returns it with those that follow within the linger; also runs the client's
    callbacks.

    `consume` alone waits for its whole time-out unless the batch is full, so a lone request would always be late.
    `poll` returns with the first message.
    """
    first = client.poll(settings.poll_wait_ms / MS)
    if first is None:
        return []
    return [first, *client.consume(settings.batch_records_max - 1, settings.batch_linger_ms / MS)]
