"""A node's card: what a process says of itself every few seconds, in one partition of the store, so that all can be listed.

No decision of a node rests on it: what it may do is the business of leases, and when it was last there that of its signs of life.
`tidegate migrate` reads in it what each process can read, beside the leases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.receipt import expiry
from tidegate_core.rows.schema_version import FIRST
from tidegate_core.rows.store_operations import Item, Key, RangeRead

STATUS_DAYS: Final = 1
"""A process that fell is listed for so long; one that ends well takes its card along."""
SILENT_MS: Final = 25_000
"""Cards are written every 5 s: five of them missing are no slow store, and half of the minute in which it is to be told."""
GONE_MS: Final = 300_000
"""Above any session that a group of ours has and the take-over behind it: who serves nothing after that is not waited for."""
NODES_MAX: Final = 1_000
"""Cards of a page: 200 KB."""
PAGES_MAX: Final = 20
"""Of cards: a node that falls every five seconds for a day leaves as many, and its peers have to be among those that are read."""

Absence: TypeAlias = Literal["silent", "replaced", "gone"]
"""What has become of a process that says nothing: nobody knows; a process of its name began after it; others serve what it had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
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
        reads: Newest version of rows that it can read (`rows/schema_version.py`); cards of processes that know of none do not say it.
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
        return expiry(self.seen, STATUS_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOrder:
    """`NODE#<owner>`/`DRAIN`: the process gives everything back and takes nothing until the order goes, or it ends."""

    at: int
    actor: str | None = None
    reason: str | None = None

    def key(self, owner: str) -> Key:
        return keys.drain_order(owner)


def all_cards(after: str | None = None) -> RangeRead:
    return RangeRead(keys.NODES, " ", keys.LAST, limit=NODES_MAX, after=after)


def cards_of(items: Iterable[Item], now: int) -> list[NodeStatus]:
    """Returns the cards that are still to live, by name: the store removes others when it likes."""
    cards = (from_item(NodeStatus, item) for item in items)
    return sorted((each for each in cards if each.expires_at > now // 1_000), key=lambda each: (each.node, each.owner))


def may_be_gone(cards: Sequence[NodeStatus], now: int) -> bool:
    """Whether `absences` has to know the owners of all shards."""
    return any(now - card.seen > GONE_MS for card in cards)


def absences(cards: Sequence[NodeStatus], now: int, owners: Collection[str] | None = None) -> Mapping[str, Absence]:
    """Returns what has become of those that say nothing, by owner.

    Args:
        cards: Of all processes.
        now: The present.
        owners: Whom the leases of all shards name; None: that was not read, so nobody is called gone.
    """
    begun = {card.node: 0 for card in cards}
    for card in cards:
        begun[card.node] = max(begun[card.node], card.started_at)
    found: dict[str, Absence] = {}
    for card in cards:
        if card.is_silent(now):
            is_gone = owners is not None and card.owner not in owners and now - card.seen > GONE_MS
            found[card.owner] = "replaced" if begun[card.node] > card.seen else "gone" if is_gone else "silent"
    return found


def missing(cards: Sequence[NodeStatus], now: int, owners: Collection[str] | None = None) -> list[NodeStatus]:
    """Returns the silent ones that nobody has replaced, and that are not gone; see `absences`."""
    found = absences(cards, now, owners)
    return [card for card in cards if found.get(card.owner) == "silent"]


def owner_of(lease: Item | None) -> str | None:
    """The process that a lease names."""
    owner = None if lease is None else lease.get("owner")
    return owner if isinstance(owner, str) else None
