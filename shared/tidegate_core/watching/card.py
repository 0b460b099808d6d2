"""A node's card: what a process says of itself every few seconds, in one partition of the store, so that all can be listed.

No decision of a node rests on it: what it may do is the business of leases, and when it was last there that of its signs of life.
`tidegate migrate` reads in it what each process can read, beside the leases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidegate_core.records.receipts import expiry
from tidegate_core.records.schema import FIRST
from tidegate_core.store import keys
from tidegate_core.store.values import Item, Key, RangeRead

CARD_DAYS: Final = 1
"""A process that fell is listed for so long; one that ends well takes its card along."""
SILENT_MS: Final = 25_000
"""Cards are written every 5 s: five of them missing are no slow store, and half of the minute in which it is to be told."""
NODES_MAX: Final = 1_000
"""Cards that are read at once: 200 KB. More processes than that in a day are no cluster of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCard:
    """`NODES`, by owner.

    Attributes:
        owner: UUID of the process.
        node: Its name, for people.
        version: Of tidegate.
        tzdata: Of the zones by which it evaluates calendars.
        started_at, seen: By its own clock.
        clock_offset_ms: By how much that clock is certainly off the brokers', as it last knew.
        held, serving: Ownership topic partitions, and those of them that fire.
        shards: How many it has.
        unready: Why it is not to be counted on; empty when it is.
        drained: Somebody ordered it to hold nothing.
        reads: Newest version of rows that it can read (`records/schema.py`); cards of processes that know of none do not say it.
        writes: Oldest version in which it still writes anything.
        findings: Promises of others' shards that it found broken, as texts; see `watchdog`.
    """

    owner: str
    node: str
    version: str
    tzdata: str
    started_at: int
    seen: int
    clock_offset_ms: int = 0
    held: tuple[int, ...] = ()
    serving: tuple[int, ...] = ()
    shards: int = 0
    unready: tuple[str, ...] = ()
    drained: bool = False
    reads: int = FIRST
    writes: int = FIRST
    findings: tuple[str, ...] = ()

    def is_silent(self, now: int) -> bool:
        """Whether it has said nothing for too long: it fell, is frozen, or reaches the store no more."""
        return now - self.seen > SILENT_MS

    @property
    def expires_at(self) -> int:
        return expiry(self.seen, CARD_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOrder:
    """`NODE#<owner>`/`DRAIN`: the process gives everything back and takes nothing until the order goes, or it ends."""

    at: int
    actor: str | None = None
    reason: str | None = None

    def key(self, owner: str) -> Key:
        return keys.drain_order(owner)


def all_cards() -> RangeRead:
    return RangeRead(keys.NODES, " ", keys.LAST, limit=NODES_MAX)


def missing(cards: Sequence[NodeCard], now: int) -> list[NodeCard]:
    """Returns the silent ones that nobody has replaced: a process of the same name that began later is the same node again."""
    begun = {card.node: 0 for card in cards}
    for card in cards:
        begun[card.node] = max(begun[card.node], card.started_at)
    return [card for card in cards if card.is_silent(now) and begun[card.node] <= card.seen]


def owner_of(lease: Item | None) -> str | None:
    """The process that a lease names."""
    owner = None if lease is None else lease.get("owner")
    return owner if isinstance(owner, str) else None
