"""Whether a shard keeps its promises, judged by somebody else from what lies in the store.

A process that is frozen, or hangs in a bug, cannot say so. Its epochs keep it from doing harm, and they do not make anything
move: somebody has to notice. Pure: all that is known is in `ShardSigns`, and `now` is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, assert_never
from zlib import crc32

LATE_MS: Final = 30_000
"""Above a take-over (7 s), a checkpoint that comes 5 s after what it covers, and signs of life, which an idle node gives each 10 to
17 s; with a turn of 20 s and a pause of 10 s it is told within a minute."""
STANDS_MS: Final = 30_000
"""A position that does not move for so long although there is something to read."""
FINDINGS_MAX: Final = 100
"""Of one node at a time, in its card: where more is broken than that, each of them says the same."""

Kind: TypeAlias = Literal["owner_silent", "messages_late", "fires_late", "starts_late", "reading_stands"]
TOLD_BY_ROWS: Final[frozenset[Kind]] = frozenset({"messages_late", "fires_late", "starts_late"})
"""What is seen in the shard's rows alone: a look without them says nothing about it."""


@dataclass(frozen=True, slots=True)
class ShardSigns:
    """What the store says of a shard.

    Attributes:
        served: Last sign of life of its owner for it; None: there is no owner, or it has given none yet.
        message_due: Slot of the first message behind the delivery position.
        timer_due: First timer row of the run plane.
        start_by: Earliest instant by which a run that is under way had to pass the start gate, outages taken off.
        unread_since: Since when a position of its requests or events has not moved although there are some.
        is_stopped: Something is suspended by a wide control: what waits may be meant to.
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
    """A promise that is not kept.

    Attributes:
        since: When what was promised was due.
    """

    shard: int
    kind: Kind
    since: int

    def text(self) -> str:
        return f"{self.shard}/{self.kind}/{self.since}"

    @classmethod
    def parse(cls, text: str) -> Broken | None:
        """Returns what a card says; None for what this version does not know."""
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
    """Returns what of a shard is late, the cause first.

    A shard without an owner yet has promised nothing: a cluster that begins, or one whose nodes are all gone, which others see.
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
    """Returns what a broken promise means to an operator."""
    match kind:
        case "owner_silent":
            return "its owner gives no sign of life for it: it is frozen, or does not reach the store"
        case "messages_late":
            return "messages are due and the delivery position does not pass them"
        case "fires_late":
            return "occurrences are due and nothing is made of them"
        case "starts_late":
            return "a run should have passed the start gate, and nobody has looked at it since"
        case "reading_stands":
            return "there are requests or events to read and the position does not move"
    assert_never(kind)


def is_watched_by(watcher: str, shard: int, owner: str | None, alive: Sequence[str]) -> bool:
    """Whether it is this process's turn to watch a shard: one does, not the owner where there is another.

    By the highest number of (process, shard): whoever comes or goes moves as few shards as can be, and nobody has to agree.

    Args:
        watcher: Who asks.
        shard: 0 to S-1.
        owner: As the lease says.
        alive: Processes that were heard of lately, the one that asks among them.
    """
    others = [each for each in alive if each != owner] or [watcher]
    return watcher == max(others, key=lambda each: (crc32(f"{shard}/{each}".encode()), each))


class Cursors:
    """Since when each position has stood although there is something behind it. Remembers; takes what was read, in any order."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[tuple[int, str], int]] = {}

    def unread_since(
        self, topic: str, topic_partition: int, position: tuple[int, str], end: int, now: int
    ) -> int | None:
        """Returns since when nothing was read although there is something; None where all is read, or it moved just now.

        Args:
            topic: Where.
            topic_partition: Likewise.
            position: Offset of the next record, and how far within it: one that many listen to is handed out page by page.
            end: Of the log.
            now: When it was looked at.
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
