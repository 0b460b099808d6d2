"""Which shard owns what: our own stable hash, never a client's partitioner (Java and librdkafka agree on 1 key in 8).

The golden vectors in this module's test freeze it: another value for the same parts would strand stored data.
"""

from __future__ import annotations

import re
from hashlib import blake2b

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
