"""Effects on the bus: records for topics, and wake-ups for other owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Produce:
    """A record for a topic. Result: `Produced` or `NotProduced`.

    Attributes:
        topic_partition: Target, or None for the client's partitioner by key.
        guarded: True for a record that cannot be revoked. The driver sends it only during the membership lease, and
            returns `NotProduced(kind="guard")` otherwise.
        due: Time at which the delivery was due, in ms since the epoch. A nominal time before its request counts as
            due at the request.
    """

    topic: str
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    topic_partition: int | None = None
    guarded: bool = False
    due: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Produced:
    """The broker acknowledged the record.

    Attributes:
        appended_at: Append time by the broker's clock, in ms since the epoch; None when topic or publisher reports
            none.
        topic_partition: Topic partition of the record; None when `appended_at` is None.
        offset: Offset of the record there; None when `appended_at` is None.
    """

    appended_at: int | None = field(default=None, compare=False)
    topic_partition: int | None = field(default=None, compare=False)
    offset: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NotProduced:
    """The record has no acknowledgement. `kind` is one of three.

    - `guard`: the driver did not send it.
    - `refused`: no repeat helps, for example an unknown topic, a record that is too large, or a missing right.
    - `unavailable`: the record may be in the topic or not.
    """

    kind: str
    message: str


Outcome: TypeAlias = Produced | NotProduced
"""Result for one record."""


@dataclass(frozen=True, slots=True)
class ProduceMany:
    """Records that the driver sends together, in this order. Result: `ManyProduced`, once each record has an outcome.

    The driver checks the lease before each record. Any of them may fail while the others succeed.

    Attributes:
        records: At least one; all guarded, or none.
    """

    records: tuple[Produce, ...]


@dataclass(frozen=True, slots=True)
class ManyProduced:
    """Result of `ProduceMany`. `outcomes` follow the order of the records."""

    outcomes: Sequence[Outcome]


@dataclass(frozen=True, slots=True)
class WakeUp:
    """Asks a shard's owner to check a row. A lost wake-up costs only latency; no result.

    Attributes:
        run_id: Run whose row changed, job that was offered a permit, or partition key of a limit for its coordinator.
            None: check the inbox.
        controls: True when the scope suspensions changed; this concerns all shards of the owner.
    """

    shard: int
    run_id: str | None = None
    controls: bool = False
