"""Where the history has an ended run, for tests that know its id."""

from __future__ import annotations

from collections.abc import Callable

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Item, Key


def ended_row(look: Callable[[Key], Item | None], run_id: str) -> Item | None:
    """Returns the row of an ended run, by the reads of one item that a store under test has."""
    place = keys.ledger_place(keys.shard_of_run(run_id), run_id)
    found = look(place)
    if found is None or found.get("run") is None:
        return None
    return look(Key(place.pk, str(found["run"]), place.table))
