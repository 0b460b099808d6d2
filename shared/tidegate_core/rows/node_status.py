"""Status rows of processes, rewritten every few seconds in one partition, so that one query lists all nodes.

No node decides anything from them: rights follow from leases, presence from heartbeats. `tidegate migrate` reads in
them, and in the leases, which row versions each process can read.
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
"""A crashed process stays listed for so long; a clean shutdown deletes its row."""
SILENT_MS: Final = 25_000
"""Five missed writes (one every 5 s) are more than a slow store, and half of the minute in which an alert is due."""
GONE_MS: Final = 300_000
"""Above the longest group session plus the take-over after it: a process that owns nothing by then is not waited for.
"""
NODES_MAX: Final = 1_000
"""Status rows of a page: 200 KB."""
PAGES_MAX: Final = 20
"""Pages of status rows.

A node that crashes every five seconds for a day leaves 17,280 rows, and its peers must still be read.
"""

Absence: TypeAlias = Literal["silent", "replaced", "gone"]
"""State of a process that writes no status: unknown; replaced by a newer process of its name; or gone, with all its
shards taken over.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """The status of one process, in partition `NODES` by owner.

    Attributes:
        owner: UUID of the process.
        node: Name of the node, for people.
        version: Release of tidegate.
        tzdata: Version of the time zones that its calendars use.
        started_at, seen: Times by its own clock.
        clock_offset_ms: Known offset of that clock from the brokers', at least.
        held, serving: Assigned ownership topic partitions, and those of them that fire.
        shards: Number of its shards.
        unready: Reasons why it is not ready; empty when it is.
        drained: True when an operator ordered it to give up all shards.
        reads: Newest row version that it can read (`rows/schema_version.py`); missing in rows of releases without
            versions.
        writes: Oldest row version in which it still writes.
        findings: Broken promises that its watchdog found in shards of other nodes, as texts.
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
        """Returns whether its status is too old: the process crashed, froze, or cannot reach the store."""
        return now - self.seen > SILENT_MS

    @property
    def expires_at(self) -> int:
        return expiry(self.seen, STATUS_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOrder:
    """The order to give up all shards and acquire none (`NODE#<owner>`/`DRAIN`), until it is removed or the process
    ends.
    """

    at: int
    actor: str | None = None
    reason: str | None = None

    def key(self, owner: str) -> Key:
        return keys.drain_order(owner)


def all_cards(after: str | None = None) -> RangeRead:
    return RangeRead(keys.NODES, " ", keys.LAST, limit=NODES_MAX, after=after)


def cards_of(items: Iterable[Item], now: int) -> list[NodeStatus]:
    """Returns the unexpired statuses by name; the store removes expired items only some time later."""
    cards = (from_item(NodeStatus, item) for item in items)
    return sorted((each for each in cards if each.expires_at > now // 1_000), key=lambda each: (each.node, each.owner))


def may_be_gone(cards: Sequence[NodeStatus], now: int) -> bool:
    """Returns whether `absences` needs the owners of all shards."""
    return any(now - card.seen > GONE_MS for card in cards)


def absences(cards: Sequence[NodeStatus], now: int, owners: Collection[str] | None = None) -> Mapping[str, Absence]:
    """Returns the state of each silent process, by owner.

    Args:
        cards: Statuses of all processes.
        now: Present time.
        owners: Owners in the leases of all shards. None: not read, so no process counts as gone.
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
    """Returns the silent processes that are neither replaced nor gone; see `absences`."""
    found = absences(cards, now, owners)
    return [card for card in cards if found.get(card.owner) == "silent"]


def owner_of(lease: Item | None) -> str | None:
    """Returns the process that a lease names."""
    owner = None if lease is None else lease.get("owner")
    return owner if isinstance(owner, str) else None
