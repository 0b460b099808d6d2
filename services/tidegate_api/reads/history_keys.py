"""Where the history has what a job or a run became, by its id alone."""

from __future__ import annotations

from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.ledger import LedgerPlace
from tidegate_core.rows.store_operations import Item
from tidegate_ports.store import Store


def place_of_job(store: Store, shard: int, job_id: str) -> LedgerPlace | None:
    """Returns where the rows of an ended job are, or None where none has ended under this id. Blocking."""
    key = keys.ledger_place(shard, job_id)
    found = store.get([key]).get(key)
    return None if found is None else from_item(LedgerPlace, found)


def ended_run(store: Store, shard: int, run_id: str) -> Item | None:
    """Returns an ended run from the history, where it is kept 30 days, or None. Blocking."""
    place = place_of_job(store, shard, run_id)
    key = None if place is None else place.run_key(shard)
    return None if key is None else store.get([key]).get(key)
