"""Finds the history rows of an ended job or run by its id."""

from __future__ import annotations

from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.ledger import LedgerPlace
from tidegate_core.rows.store_operations import Item
from tidegate_ports.store import Store


def place_of_job(store: Store, shard: int, job_id: str) -> LedgerPlace | None:
    """Returns the place of an ended job's rows, or None if no job with this id has ended. Blocking."""
    key = keys.ledger_place(shard, job_id)
    found = store.get([key]).get(key)
    return None if found is None else from_item(LedgerPlace, found)


def ended_run(store: Store, shard: int, run_id: str) -> Item | None:
    """Returns an ended run from the history, or None. Ended runs are kept 30 days. Blocking."""
    place = place_of_job(store, shard, run_id)
    key = None if place is None else place.run_key(shard)
    return None if key is None else store.get([key]).get(key)
