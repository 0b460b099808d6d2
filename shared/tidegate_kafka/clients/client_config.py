"""Builds the librdkafka properties of each client from the settings. Pure functions; the clients' constructors call
them.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from tidegate_kafka.clients.settings import KafkaSettings

GUARDED_MS_MAX: Final = 2_500
"""Longest life of a guarded record, however long the session. It stays below the 3 s after which the core gives the
record up (`WIRE_PATIENCE_MS`): a record that was given up must not reach the log later."""

OWNER_ROLE: Final = "owner"
"""Last part of the client id of the consumer that is a member of the group."""

ConfigValue: TypeAlias = str | int | float | bool
Config: TypeAlias = dict[str, ConfigValue]


def admin_config(settings: KafkaSettings) -> Config:
    # Failures arrive in the answers. The admin client is never polled, so its log lines would go nowhere.
    return {"log_level": 2} | _common(settings, "admin")


def membership_config(settings: KafkaSettings) -> Config:
    """Returns the configuration of the ownership consumer.

    `group.instance.id` stays unset: with it, a replaced pod could not join for the length of a session.
    """
    config = _consumer(settings, OWNER_ROLE) | {"group.id": settings.group, "group.protocol": settings.group_protocol}
    if settings.group_protocol == "consumer":
        # With KIP-848 the brokers set session and heartbeat; the client refuses to start with these properties.
        return config | {"max.poll.interval.ms": settings.poll_gap_ms_max}
    return config | {
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": settings.session_ms,
        "heartbeat.interval.ms": settings.heartbeat_ms,
        "max.poll.interval.ms": settings.poll_gap_ms_max,
    }


def reader_config(settings: KafkaSettings) -> Config:
    """Returns the configuration of a consumer with manual assignment. It needs a group id but never joins a group."""
    return _consumer(settings, "reader") | {"group.id": f"{settings.group}.reader"}


def producer_config(settings: KafkaSettings, *, guarded: bool) -> Config:
    life_ms = min(settings.half_session_ms, GUARDED_MS_MAX) if guarded else settings.delivery_ms_max
    return _common(settings, "guarded" if guarded else "plain") | {
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": settings.linger_ms,
        "compression.type": settings.compression,
        # Java's default for keyed records. librdkafka's default, CRC32, agrees with it for 1 key in 8. Users who join
        # our topics with those of Java producers by topic partition would find nothing.
        "partitioner": "murmur2_random",
        "message.timeout.ms": life_ms,
        "request.timeout.ms": life_ms,
        # Refuse a topic that the brokers have not known for this long. A new topic has time to reach all brokers, and
        # the refusal still comes before the record expires as "unavailable".
        "topic.metadata.propagation.max.ms": life_ms // 2,
        "allow.auto.create.topics": False,
        "message.max.bytes": settings.record_bytes_max,
        "queue.buffering.max.messages": settings.queue_records_max,
        "queue.buffering.max.kbytes": max(65_536, 4 * settings.record_bytes_max // 1024),
    }


def _consumer(settings: KafkaSettings, role: str) -> Config:
    return _common(settings, role) | {
        # The store holds the positions: the client must not jump silently, nor commit offsets on its own.
        "auto.offset.reset": "error",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": settings.fetch_wait_ms,
        "queued.max.messages.kbytes": settings.fetch_queue_kib,
        # The default of 1 s would stall a reader that is exactly as fast as its queue.
        "fetch.queue.backoff.ms": 20,
    }


def _common(settings: KafkaSettings, role: str) -> Config:
    return {
        "bootstrap.servers": settings.bootstrap_servers,
        "client.id": f"{settings.client_id}-{role}",
        "topic.metadata.refresh.interval.ms": settings.metadata_age_ms,
        # Finds a broker within a second of its return, however long it was away.
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1_000,
        # Closes a half-open connection after this instead of after 60 s.
        "socket.timeout.ms": 10_000,
        "socket.connection.setup.timeout.ms": 5_000,
        **settings.client_properties(),
        **settings.extra,
    }
