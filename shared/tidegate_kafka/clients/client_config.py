"""librdkafka's properties for each of our clients, from the settings. Pure: what a client is made with is a value."""

from __future__ import annotations

from typing import Final, TypeAlias

from tidegate_kafka.clients.settings import KafkaSettings

GUARDED_MS_MAX: Final = 2_500
"""What the core has given up, 3 s after it was sent (`WIRE_PATIENCE_MS`), must not come about any more, however long the session."""

OWNER_ROLE: Final = "owner"
"""Of the client that is a member of the group, at the end of its id."""

ConfigValue: TypeAlias = str | int | float | bool
Config: TypeAlias = dict[str, ConfigValue]


def admin_config(settings: KafkaSettings) -> Config:
    # Nobody polls an admin client for its lines; what fails is said in its answers.
    return {"log_level": 2} | _common(settings, "admin")


def membership_config(settings: KafkaSettings) -> Config:
    """The ownership consumer. `group.instance.id` stays unset: a replaced pod would be locked out for a session."""
    config = _consumer(settings, OWNER_ROLE) | {"group.id": settings.group, "group.protocol": settings.group_protocol}
    if settings.group_protocol == "consumer":
        # With KIP-848 these are the broker's; the client refuses to start when they are set.
        return config | {"max.poll.interval.ms": settings.poll_gap_ms_max}
    return config | {
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": settings.session_ms,
        "heartbeat.interval.ms": settings.heartbeat_ms,
        "max.poll.interval.ms": settings.poll_gap_ms_max,
    }


def reader_config(settings: KafkaSettings) -> Config:
    """The consumer with manual assign. It never joins its group; the client just wants a name."""
    return _consumer(settings, "reader") | {"group.id": f"{settings.group}.reader"}


def producer_config(settings: KafkaSettings, *, guarded: bool) -> Config:
    life_ms = min(settings.half_session_ms, GUARDED_MS_MAX) if guarded else settings.delivery_ms_max
    return _common(settings, "guarded" if guarded else "plain") | {
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": settings.linger_ms,
        "compression.type": settings.compression,
        # Java's default for keyed records. librdkafka's own is CRC32, which agrees with it on 1 key in 8: readers that
        # join our topics with those of Java producers by topic partition would find nothing.
        "partitioner": "murmur2_random",
        "message.timeout.ms": life_ms,
        "request.timeout.ms": life_ms,
        # A topic that the brokers do not know for so long is refused: long enough for one that was made just now to
        # spread, short enough to be told before the record's own life ends as "unavailable".
        "topic.metadata.propagation.max.ms": life_ms // 2,
        "allow.auto.create.topics": False,
        "message.max.bytes": settings.record_bytes_max,
        "queue.buffering.max.messages": settings.queue_records_max,
        "queue.buffering.max.kbytes": max(65_536, 4 * settings.record_bytes_max // 1024),
    }


def _consumer(settings: KafkaSettings, role: str) -> Config:
    return _common(settings, role) | {
        # Positions are the store's: no silent jump, nothing committed behind our back.
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
        # A broker that is back shall be found within a second, whatever the length of its absence.
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1_000,
        # A half-open connection is given up after this instead of 60 s.
        "socket.timeout.ms": 10_000,
        "socket.connection.setup.timeout.ms": 5_000,
        **settings.client_properties(),
        **settings.extra,
    }
