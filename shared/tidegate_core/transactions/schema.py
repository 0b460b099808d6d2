"""The item `SCHEMA` moves by compare-and-set: two `tidegate migrate` at once never take turns in it."""

from __future__ import annotations

from tidegate_core.records.codec import to_item
from tidegate_core.records.schema import StoreSchema
from tidegate_core.store.keys import SCHEMA_KEY
from tidegate_core.store.values import Item, Put, Transaction
from tidegate_core.transactions import conditions
from tidegate_core.transactions.ownership import whole


def move_schema(seen: Item | None, after: StoreSchema, token: str) -> Transaction:
    """Writes what holds from now on, in the place of what was read; refused when somebody else has moved it since."""
    revision = 0 if seen is None else whole(seen, "rev")
    condition = conditions.absent() if seen is None else conditions.unchanged(revision)
    item = {**to_item(after, SCHEMA_KEY), "rev": revision + 1, "w": token}
    return Transaction("schema", (Put(SCHEMA_KEY, item, condition),), token, SCHEMA_KEY)
