"""The bus: records for topics, and words to other actors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Produce:
    """A record for a topic. Answer: `Produced` or `NotProduced`.

    Attributes:
        topic_partition: Fixed target, or None for the client's partitioner by key.
        guarded: Irreversible outside tidegate: the driver sends it only while the local guard holds (DESIGN 3),
            and answers `NotProduced(kind="guard")` else.
        due: When a delivery was due, in ms since the epoch; a nominal instant that lay in the past at its request is due with that.
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
        appended_at: The broker's clock, in ms since the epoch, where the topic has append times and the publisher tells them.
        topic_partition: Where the record lies; told together with its time.
        offset: Its place there, likewise.
    """

    appended_at: int | None = field(default=None, compare=False)
    topic_partition: int | None = field(default=None, compare=False)
    offset: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NotProduced:
    """`kind`: `guard` (not sent), `refused` (will not work as it is: unknown topic, too large, not allowed), `unavailable` (may or may not be there)."""

    kind: str
    message: str


Outcome: TypeAlias = Produced | NotProduced
"""What became of one record."""


@dataclass(frozen=True, slots=True)
class ProduceMany:
    """Records that are handed over together, in this order. Answer: `ManyProduced`, once each of them has an outcome.

    Each has a fate of its own: the guard is asked before each one, and any of them may fail while the others are there.

    Attributes:
        records: At least one; all guarded, or none.
    """

    records: tuple[Produce, ...]


@dataclass(frozen=True, slots=True)
class ManyProduced:
    """`outcomes`: of each record, in their order."""

    outcomes: Sequence[Outcome]


@dataclass(frozen=True, slots=True)
class WakeUp:
    """Tells whoever owns the shard that there is something for it. Lost ones cost latency only; no answer.

    Attributes:
        run_id: The run whose item changed; a job that was offered a slot of a shared limit; partition key of a limit, for
            its home; or None for "look into the inbox".
        controls: The wide controls have changed; for all shards of whoever holds this one.
    """

    shard: int
    run_id: str | None = None
    controls: bool = False
