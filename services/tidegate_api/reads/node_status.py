"""Reads the status rows of nodes and the owners of shards, for the lists of nodes and of shards."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate_core.rows import keys
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.rows.node_status import PAGES_MAX, NodeStatus, all_cards, cards_of, owner_of
from tidegate_core.rows.store_operations import Item
from tidegate_core.writes.partition_map import map_of
from tidegate_ports.store import Store


def read_cards(store: Store, now: int) -> list[NodeStatus]:
    """Returns the status rows of the last day, by name. Blocks; raises StoreUnavailable."""
    items: list[Item] = []
    after: str | None = None
    for _ in range(PAGES_MAX):
        page = store.query(all_cards(after))
        items += page.items
        after = page.next_after
        if after is None:
            break
    return cards_of(items, now)


def read_owners(store: Store) -> frozenset[str]:
    """Returns the owners in the leases of all shards; empty without a partition map. Blocks; raises StoreUnavailable."""
    stored = store.get([MAP_KEY]).get(MAP_KEY)
    shards: Iterable[int] = () if stored is None else range(map_of(stored).shards)
    leases = [keys.lease(shard) for shard in shards]
    found = store.get(leases) if leases else {}
    return frozenset(owner for lease in leases if (owner := owner_of(found.get(lease))) is not None)
