"""Builds the record that delivers a message, and dead letters. Delivery, retries and cancels call it; it writes nothing."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Final

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import RefusedRecord
from tidegate_core.rows.dead_letter import UNDELIVERABLE
from tidegate_core.rows.effects import Produce
from tidegate_core.rows.message import Message, MessageName, public_id
from tidegate_core.writes.message_delivery import DIGEST_MODULUS, Tally

WIRE_PATIENCE_MS: Final = 3_000
"""Longest wait for records that the broker's client has: after it the guarded producer has given them up, whatever its session."""

PROBLEM_BYTES_MAX = 1_024
NO_HEADERS = "[]"
"""Stored headers of a message for which the user set none."""
INSTANTS_KEPT = 64
"""Texts of instants in memory: messages that are due together share one, and it costs as much as the rest of the record."""


def id_of(shard: int, message: Message) -> str:
    """Returns the id under which the message is delivered."""
    return public_id(shard, MessageName(message.id, message.keyed), message.version)


def record_of(message: Message, attempt: int, delivered_id: str) -> Produce:
    """Returns the record that delivers the message."""
    headers = [] if message.headers == NO_HEADERS else _headers_of(message)
    headers += [
        ("tidegate-id", delivered_id.encode()),
        ("tidegate-nominal", _instant(message.nominal)),
        ("tidegate-attempt", str(attempt).encode()),
    ]
    if message.covered_from is not None and message.covered_to is not None:
        headers += [
            ("tidegate-covered-from", _instant(message.covered_from)),
            ("tidegate-covered-to", _instant(message.covered_to)),
            ("tidegate-covered-count", str(message.covered_count).encode()),
        ]
    key = None if message.message_key is None else message.message_key.encode()
    # The text of a log position begins with its append time.
    due = max(message.nominal, int(message.origin[:13]))
    return Produce(message.topic, key, message.payload, tuple(headers), guarded=True, due=due)


def _headers_of(message: Message) -> list[tuple[str, bytes]]:
    return [(name, value.encode()) for name, value in json.loads(message.headers)]


@lru_cache(maxsize=INSTANTS_KEPT)
def _instant(instant: int) -> bytes:
    return format_instant(instant).encode()


def dead_letter_of(host: ActorContext, shard: int, message: Message, attempt: int, problem: str) -> Produce:
    """Returns the dead letter: the record as delivered, with its topic, the error, and the log position of its request."""
    record = record_of(message, attempt, id_of(shard, message))
    error = _error_headers(host, message.topic, Position.parse(message.origin), UNDELIVERABLE, problem)
    return Produce(host.holding.requests_dlq_topic, record.key, record.value, (*record.headers, *error))


def refused_letter_of(host: ActorContext, request: bytes, origin: Position, refused: RefusedRecord) -> Produce:
    """Returns the dead letter of a request that this node cannot read."""
    error = _error_headers(host, host.holding.requests.name, origin, refused.error_class, str(refused))
    return Produce(host.holding.requests_dlq_topic, None, request, error)


def tell_dead_lettered(host: ActorContext, origin: str, error_class: str, problem: str, **more: str) -> None:
    """Emits the log event, which is also counted, that the request at `origin` has a dead letter."""
    at = Position.parse(origin)
    host.note(
        "record_dead_lettered",
        topic=host.holding.requests.name,
        topic_partition=at.topic_partition,
        offset=at.offset,
        error_class=error_class,
        problem=problem,
        **more,
    )


def _error_headers(
    host: ActorContext, topic: str, origin: Position, error_class: str, problem: str
) -> tuple[tuple[str, bytes], ...]:
    return (
        ("tidegate.error.topic", topic.encode()),
        ("tidegate.error.topic_id", origin.topic_id.encode()),
        ("tidegate.error.partition", str(origin.topic_partition).encode()),
        ("tidegate.error.offset", str(origin.offset).encode()),
        ("tidegate.error.class", error_class.encode()),
        ("tidegate.error.message", problem.encode()[:PROBLEM_BYTES_MAX]),
        ("tidegate.error.at", format_instant(host.now).encode()),
    )


def delivered_as(delivered_id: str, covered: int = 1) -> Tally:
    """Returns the tally of one delivery under this id, for `covered` occurrences."""
    digest = hashlib.blake2b(delivered_id.encode(), digest_size=8).digest()
    return Tally(delivered=1, digest=int.from_bytes(digest, "big") % DIGEST_MODULUS, coalesced=covered - 1)


def not_sent(host: ActorContext, ref: str, reason: str, occurrences: int, first: int, last: int) -> None:
    """Emits the log event that occurrences of a recurring message ended without a delivery; a successor may repeat it.

    Args:
        host: Takes the event: no row is written per message.
        ref: The schedule.
        reason: `expire_after`, or `outage` if the schedule's catch-up leaves out misfires.
        occurrences: Number of occurrences.
        first: Nominal time of the first occurrence.
        last: Nominal time of the last occurrence.
    """
    host.note("recurring_not_sent", schedule=ref, reason=reason, occurrences=occurrences, first=first, last=last)
