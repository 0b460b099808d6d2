"""Judges whether a shard keeps its promises, from signs in the store; a node asks about shards of other nodes.

A process that is frozen, or stuck in a bug, cannot report itself. Epochs prevent damage, but they do not make the shard move, so another
process must notice. Pure: `ShardSigns` has all facts, and `now` is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, assert_never
from zlib import crc32

LATE_MS: Final = 30_000
"""Lateness that breaks a promise. It is above a take-over (7 s), the delay of a checkpoint (5 s), and the heartbeat of an idle node (10 to 17 s).
With checks that take 20 s and pauses of 10 s it is reported within a minute."""
STANDS_MS: Final = 30_000
"""Time for which a read position may stay although there are records to read."""
FINDINGS_MAX: Final = 100
"""Broken promises that one node reports in its status row; with more of them, the rest say the same."""

Kind: TypeAlias = Literal["owner_silent", "messages_late", "fires_late", "starts_late", "reading_stands"]
TOLD_BY_ROWS: Final[frozenset[Kind]] = frozenset({"messages_late", "fires_late", "starts_late"})
"""Kinds that only the rows of a shard show: a check that did not read the rows says nothing about them."""


@dataclass(frozen=True, slots=True)
class ShardSigns:
    """Signs of a shard in the store.

    Attributes:
        served: Last heartbeat of the owner for the shard; None: there is no owner, or no heartbeat so far.
        message_due: Slot of the first message after the delivery position.
        timer_due: Instant of the first timer row of a schedule.
        start_by: Earliest instant by which an open run had to pass the start gate, with outages added.
        unread_since: Instant since which a position of requests or events has not moved although there are records.
        is_stopped: Whether a scope is suspended: then rows may wait on purpose.
    """

    shard: int
    owner: str | None
    epoch: int
    served: int | None
    message_due: int | None = None
    timer_due: int | None = None
    start_by: int | None = None
    unread_since: int | None = None
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Broken:
    """Broken promise of a shard.

    Attributes:
        since: Instant at which the promised step was due.
    """

    shard: int
    kind: Kind
    since: int

    def text(self) -> str:
        return f"{self.shard}/{self.kind}/{self.since}"

    @classmethod
    def parse(cls, text: str) -> Broken | None:
        """Returns the broken promise that a status row names; None: this version does not know its kind."""
        match text.split("/"):
            case [
                shard,
                "owner_silent" | "messages_late" | "fires_late" | "starts_late" | "reading_stands" as kind,
                since,
            ] if shard.isdecimal() and since.isdecimal():
                return cls(int(shard), kind, int(since))
            case _:
                return None


def broken_promises(signs: ShardSigns, now: int) -> tuple[Broken, ...]:
    """Returns the broken promises of a shard, the cause first.

    A shard that never had an owner has promised nothing. The cluster has just begun, or all nodes are gone, which other checks report.
    """
    found: list[Broken] = []

    def late(kind: Kind, since: int | None, patience_ms: int) -> None:
        if since is not None and now - since > patience_ms:
            found.append(Broken(signs.shard, kind, since))

    if signs.owner is not None:
        late("owner_silent", signs.served, LATE_MS)
        late("reading_stands", signs.unread_since, STANDS_MS)
        if not signs.is_stopped:
            late("messages_late", signs.message_due, LATE_MS)
            late("fires_late", signs.timer_due, LATE_MS)
            late("starts_late", signs.start_by, LATE_MS)
    return tuple(found)


def meaning(kind: Kind) -> str:
    """Returns the meaning of a broken promise, for operators."""
    match kind:
        case "owner_silent":
            return "its owner writes no heartbeat for it: the process is frozen, or does not reach the store"
        case "messages_late":
            return "messages are due and the delivery position does not pass them"
        case "fires_late":
            return "occurrences are due and no job is made"
        case "starts_late":
            return "a run should have passed the start gate, and its owner has not checked it since"
        case "reading_stands":
            return "there are requests or events to read and the position does not move"
    assert_never(kind)


def is_watched_by(watcher: str, shard: int, owner: str | None, alive: Sequence[str]) -> bool:
    """Whether this process watches a shard. One process does, and not the owner if there is another.

    The process with the highest hash of (shard, process) watches. So no agreement is needed, and a process that joins or leaves moves few shards.

    Args:
        watcher: Process that asks.
        shard: Number of the shard, 0 to S-1.
        owner: Owner in the lease.
        alive: Processes with a recent heartbeat, including the one that asks.
    """
    others = [each for each in alive if each != owner] or [watcher]
    return watcher == max(others, key=lambda each: (crc32(f"{shard}/{each}".encode()), each))


class Cursors:
    """Remembers since when each read position has not moved although there are records to read. Readings may come in any order."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[tuple[int, str], int]] = {}

    def unread_since(
        self, topic: str, topic_partition: int, position: tuple[int, str], end: int, now: int
    ) -> int | None:
        """Returns the instant since which a position has not moved although there are records; None: all is read, or it has just moved.

        Args:
            topic: Topic.
            topic_partition: Topic partition.
            position: Offset of the next record, and the progress within it: a record with many subscribers is handed out page by page.
            end: End offset of the log.
            now: Instant of the reading.
        """
        where = (topic, topic_partition)
        if position[0] >= end:
            self._seen.pop(where, None)
            return None
        before = self._seen.get(where)
        if before is None or before[0] != position:
            self._seen[where] = (position, now)
            return None
        return before[1]
