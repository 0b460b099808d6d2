"""Conversion of rows of an older version, one row per conditional write, for `tidegate migrate`.

A conversion only adds attributes that an older release ignores, so it may run while such nodes serve. Its condition
is that the row exists in the older version, so a repeated or late write is refused. It leaves `rev` unchanged,
because no owner decides from the added attribute; an owner's own write replaces the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.keys import SCHEMA_KEY
from tidegate_core.rows.schema_version import BOUNDS, StoreSchema
from tidegate_core.rows.store_operations import Item, Key, Put, Transaction, Update
from tidegate_core.writes import conditions
from tidegate_core.writes.fencing import whole


@dataclass(frozen=True, slots=True)
class Move:
    """The conversion of one kind of rows.

    Attributes:
        name: Name for people and in the cursor, without `/`.
        version: Version of the converted rows.
        prefix: Prefix of the sort keys in each shard's partition.
        change: Returns the write that a row needs; None for a row that needs none.
    """

    name: str
    version: int
    prefix: str
    change: Callable[[Item], Update | None]


def _say_order(row: Item) -> Update | None:
    """Adds the queue order to a queue entry: older releases queued by waiting time alone."""
    if "order" in row:
        return None
    satisfied_at = row["satisfied_at"]
    condition = conditions.of_an_older_version("order")
    key = Key(str(row["pk"]), str(row["sk"]))
    return Update(key, "SET #order = :order", {"#order": "order"}, {":order": satisfied_at}, condition)


# Queue entries from before 0.1.0 have another prefix, which no release reads any more.
MOVES: Final = (Move("order of waiters", BOUNDS, keys.QUEUE_ENTRY_PREFIX, _say_order),)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Progress of a pass: all rows before it have the version.

    Attributes:
        version: Target version of the pass.
        move: Number of the conversion, in order.
        shard: 0 to S-1.
        after: Sort key of the last checked row; empty at the start of a shard.
    """

    version: int
    move: int = 0
    shard: int = 0
    after: str = ""

    def text(self) -> str:
        return f"{self.version}/{self.move}/{self.shard}/{self.after}"

    @classmethod
    def parse(cls, text: str) -> Place:
        version, move, shard, after = text.split("/", 3)
        return cls(int(version), int(move), int(shard), after)


def range_of(move: Move, place: Place) -> tuple[str, str, str]:
    """Returns partition key and range of a shard's remaining rows."""
    return keys.shard_pk(place.shard), move.prefix, f"{move.prefix}{keys.LAST}"


def move_schema(seen: Item | None, after: StoreSchema, token: str) -> Transaction:
    """Writes the store's schema; refused when another process has moved it since the read."""
    revision = 0 if seen is None else whole(seen, "rev")
    condition = conditions.absent() if seen is None else conditions.unchanged(revision)
    item = {**to_item(after, SCHEMA_KEY), "rev": revision + 1, "w": token}
    return Transaction("schema", (Put(SCHEMA_KEY, item, condition),), token, SCHEMA_KEY)
