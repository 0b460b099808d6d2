"""Stable hashes: the shard of a schedule or message, and the ids that the core derives.

The shard comes from tidegate's own hash, never from a Kafka client's partitioner: the partitioners of Java and librdkafka agree
on 1 key in 8. Another hash value for the same parts would make stored rows unreachable, so the golden vectors in the test of
this module fix the values. The core has no randomness, and a repeat must give the same id; so ids are hashes as well.
"""

from __future__ import annotations

import re
from base64 import b32encode
from hashlib import blake2b
from typing import TypeAlias

from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.log_position import Position

PRINTED_ID = re.compile(r"(\d{4})-([a-z2-7]{26})", re.ASCII)
"""Printed id of a run, a job or a delivered message. Its first four digits are the shard."""


def hash_of(*parts: str) -> bytes:
    """Returns the 64 bytes of BLAKE2b over the length-prefixed UTF-8 parts.

    The prefix (4 bytes, big-endian) keeps `("a", "bc")` and `("ab", "c")` apart.
    """
    digest = blake2b()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(4, "big"))
        digest.update(encoded)
    return digest.digest()


def shard_of(*parts: str, shard_count: int) -> int:
    """Returns the shard of the parts: the hash's first 8 bytes, big-endian, modulo the number of shards.

    Args:
        parts: Names of the object, in a fixed order.
        shard_count: Number of shards of the cluster, fixed when the cluster was created.
    """
    return int.from_bytes(hash_of(*parts)[:8], "big") % shard_count


def schedule_shard(namespace: str, name: str, shard_count: int) -> int:
    return shard_of(namespace, name, shard_count=shard_count)


def cluster_object_shard(name: str, shard_count: int) -> int:
    """Returns the owner shard of a cluster object. It hashes one part; schedules and messages have two."""
    return shard_of(name, shard_count=shard_count)


def message_shard(namespace: str, key: str | None, message_id: str, shard_count: int) -> int:
    """Returns the shard of a message that has a key or an id.

    A key decides first, so that a replacement reaches the same shard. Without a key the id decides: the hash of it, or the
    shard that a printed id names. A sender may reuse the printed id of a run or of another message as the message's id.
    Nothing distinguishes such an id from the message's own printed id, so both lead to the shard that they name.
    """
    printed = None if key is not None else PRINTED_ID.fullmatch(message_id)
    if printed is not None and int(printed[1]) < shard_count:
        return int(printed[1])
    return shard_of(namespace, message_id if key is None else key, shard_count=shard_count)


def unnamed_message_shard(topic_partition: int, shard_count: int) -> int:
    """Returns the shard of a message that has neither key nor id: the number of its record's topic partition.

    The node that reads the record also owns this shard, in every partition map that contains the topic partition: shard n is
    in topic partition n mod N, which is n while n < N. So the message needs no inbox row (docs/decisions, decision 32).
    """
    return topic_partition % shard_count


OccurrenceMark: TypeAlias = tuple[str, ...]
"""Distinguishes the occurrences of one trigger. The parts are hashed one by one, because joined user texts could collide."""

MAX_SHARDS = 10_000
"""A run id has four digits for the shard."""

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def nominal_mark(nominal: Instant) -> OccurrenceMark:
    return ("nominal", str(nominal))


def seal_mark(number: int, correlation: str | None = None) -> OccurrenceMark:
    """Returns the mark of an event trigger's occurrence: the number of its seal, and the correlation key if there is one."""
    return ("seal", str(number)) if correlation is None else ("seal", str(number), correlation)


def manual_mark(position: Position) -> OccurrenceMark:
    """Returns the mark of a manual run: the position of its request, so that a replayed request is the same occurrence."""
    return ("manual", position.text())


def run_id(shard: int, incarnation: str, trigger: str, mark: OccurrenceMark) -> str:
    """Returns the id of an occurrence's job, which is also the id of its run: an occurrence has one job and one run.

    Args:
        shard: The schedule's shard, 0 to 9,999. The id contains it, so that any API process finds the run's row.
        incarnation: Incarnation of the schedule: a schedule that is deleted and created again never reuses an id.
        trigger: The trigger's type, or `manual`.
        mark: From `nominal_mark`, `seal_mark` or `manual_mark`.

    Raises:
        ValueError: The shard does not fit four digits.
    """
    if not 0 <= shard < MAX_SHARDS:
        raise ValueError(f"shard {shard} is not in 0..{MAX_SHARDS - 1}")
    # 16 bytes are 26 characters of base32: with 128 bits two occurrences never get the same id by chance.
    return f"{shard:04d}-{base32(hash_of(incarnation, trigger, *mark)[:16])}"


def shard_of_run(run: str) -> int:
    """Returns the shard in the id of a run or job.

    Raises:
        ValueError: The text is no such id.
    """
    match = PRINTED_ID.fullmatch(run)
    if match is None:
        raise ValueError(f"{run!r} is not a run id such as 0042-mfrggzdfmztwq2lkn5wg63tqoe")
    return int(match[1])


def external_name(run: str, attempt: int) -> str:
    """Returns the name of an attempt at the launcher's platform: at most 63 characters, valid for Kubernetes, YARN and Livy."""
    return f"tg-{run}-a{attempt}"


def incarnation_of(position: Position) -> str:
    """Returns the ULID of a schedule's incarnation: append time of the request that created it, then 80 bits of a hash of its position."""
    number = position.append_time << 80 | int.from_bytes(hash_of("incarnation", position.text())[:10], "big")
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def base32(raw: bytes) -> str:
    """Returns lower-case base32 without padding, which is safe in names, file paths and sort keys."""
    return b32encode(raw).decode().rstrip("=").lower()
