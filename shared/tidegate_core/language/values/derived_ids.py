"""Which shard owns what: our own stable hash, never a client's partitioner (Java and librdkafka agree on 1 key in 8).

The golden vectors in this module's test freeze it: another value for the same parts would strand stored data.


Ids that the core makes: hashes of what they name, because the core has no randomness and a repeat must give the same.
"""

from __future__ import annotations

import re
from base64 import b32encode
from hashlib import blake2b
from typing import TypeAlias

from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.log_position import Position

PRINTED_ID = re.compile(r"(\d{4})-([a-z2-7]{26})", re.ASCII)
"""The id of a run, a job or a delivered message, as it is printed: it names its shard."""


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
        parts: What names the thing, in a fixed order.
        shard_count: Shards of the cluster, fixed when it was created.
    """
    return int.from_bytes(hash_of(*parts)[:8], "big") % shard_count


def schedule_shard(namespace: str, name: str, shard_count: int) -> int:
    return shard_of(namespace, name, shard_count=shard_count)


def suspensions_shard(shard_count: int) -> int:
    """Returns the home shard of the wide controls: one part only, so that no schedule or message has the same parts."""
    return shard_of("controls", shard_count=shard_count)


def sources_shard(shard_count: int) -> int:
    """Returns the home shard of all sources."""
    return shard_of("sources", shard_count=shard_count)


def message_shard(namespace: str, key: str | None, message_id: str, shard_count: int) -> int:
    """Returns the shard of a message that its sender names: of its key, so that a replacement meets it, else of its id.

    A sender may give it the id of a run or of another message, and nobody can tell such an id from one that was printed of the message
    itself: it names the shard of either.
    """
    printed = None if key is not None else PRINTED_ID.fullmatch(message_id)
    if printed is not None and int(printed[1]) < shard_count:
        return int(printed[1])
    return shard_of(namespace, message_id if key is None else key, shard_count=shard_count)


def unnamed_message_shard(topic_partition: int, shard_count: int) -> int:
    """Returns the shard of a message that has neither key nor id: the one with the number of the topic partition of its record.

    Whoever reads the record owns that shard, under each map that has the topic partition, whatever it grows to (shard mod N is the
    number itself below N): the message needs no way through an inbox (decision 32).
    """
    return topic_partition % shard_count


OccurrenceMark: TypeAlias = tuple[str, ...]
"""What tells a trigger's occurrences apart. Parts stay apart until they are hashed: user text is never joined."""

MAX_SHARDS = 10_000
"""Four digits of a run id."""

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def nominal_mark(nominal: Instant) -> OccurrenceMark:
    return ("nominal", str(nominal))


def seal_mark(number: int, correlation: str | None = None) -> OccurrenceMark:
    """Returns the mark of an event trigger's occurrence: the number of its seal, per correlation key where it has one."""
    return ("seal", str(number)) if correlation is None else ("seal", str(number), correlation)


def manual_mark(position: Position) -> OccurrenceMark:
    """Returns the mark of a "run now": its request's position, so that a replay of the request is the same occurrence."""
    return ("manual", position.text())


def run_id(shard: int, incarnation: str, trigger: str, mark: OccurrenceMark) -> str:
    """Returns the id of an occurrence's run, which is also its job's: one occurrence, one job, one run.

    Args:
        shard: The schedule's shard, 0 to 9,999; readable from the id, so that any API process finds the run's item.
        incarnation: The schedule's life: a name that is deleted and made again never reuses an id.
        trigger: The trigger's type, or `manual`.
        mark: From `nominal_mark`, `seal_mark` or `manual_mark`.

    Raises:
        ValueError: The shard does not fit four digits.
    """
    if not 0 <= shard < MAX_SHARDS:
        raise ValueError(f"shard {shard} is not in 0..{MAX_SHARDS - 1}")
    # 16 bytes are 26 characters of base32: 128 bits, so that two occurrences never meet by chance.
    return f"{shard:04d}-{base32(hash_of(incarnation, trigger, *mark)[:16])}"


def shard_of_run(run: str) -> int:
    """Returns the shard that a run's or job's id names.

    Raises:
        ValueError: The text is not such an id.
    """
    match = PRINTED_ID.fullmatch(run)
    if match is None:
        raise ValueError(f"{run!r} is not a run id such as 0042-mfrggzdfmztwq2lkn5wg63tqoe")
    return int(match[1])


def external_name(run: str, attempt: int) -> str:
    """Returns the name that an attempt has on a cluster: at most 63 characters, valid for Kubernetes, YARN and Livy."""
    return f"tg-{run}-a{attempt}"


def incarnation_of(position: Position) -> str:
    """Returns the ULID of a schedule's life: its creating request's append time, then 80 bits of the position's hash."""
    number = position.append_time << 80 | int.from_bytes(hash_of("incarnation", position.text())[:10], "big")
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def base32(raw: bytes) -> str:
    """Returns lower-case base32 without padding: safe in names, file paths and sort keys."""
    return b32encode(raw).decode().rstrip("=").lower()
