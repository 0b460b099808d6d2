"""What becomes of rows of an older version: one row, one conditional write, whoever else writes it meanwhile.

A move only adds what an older release leaves aside, so it may run while such nodes serve. Its condition is that the row is still
there and still of the older version: a repeat, and one that comes late, is refused. It leaves `rev` as it is, because it says
nothing that an owner decides from anew; an owner's own write takes its place.
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
    """How rows of one kind come to a version.

    Attributes:
        name: For people, and in the cursor; holds no `/`.
        version: To which it brings them.
        prefix: Of the sort keys in each shard's partition.
        change: Returns the write that a row needs, None for one that is as it should be.
    """

    name: str
    version: int
    prefix: str
    change: Callable[[Item], Update | None]


def _say_order(row: Item) -> Update | None:
    """A job's place in a queue used to go by its waiting alone."""
    if "order" in row:
        return None
    satisfied_at = row["satisfied_at"]
    condition = conditions.of_an_older_version("order")
    key = Key(str(row["pk"]), str(row["sk"]))
    return Update(key, "SET #order = :order", {"#order": "order"}, {":order": satisfied_at}, condition)


# Waiter rows of before 0.1.0 lay under another prefix, which nobody reads (decision 26).
MOVES: Final = (Move("order of waiters", BOUNDS, keys.QUEUE_ENTRY_PREFIX, _say_order),)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """How far a pass has come: all before it is of the version.

    Attributes:
        version: To which the pass brings rows.
        move: Number of the move, in order.
        shard: 0 to S-1.
        after: Sort key of the last row that was looked at; empty at the shard's begin.
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
    """Returns partition key and range of what is left of a shard."""
    return keys.shard_pk(place.shard), move.prefix, f"{move.prefix}{keys.LAST}"


def move_schema(seen: Item | None, after: StoreSchema, token: str) -> Transaction:
    """Writes what holds from now on, in the place of what was read; refused when somebody else has moved it since."""
    revision = 0 if seen is None else whole(seen, "rev")
    condition = conditions.absent() if seen is None else conditions.unchanged(revision)
    item = {**to_item(after, SCHEMA_KEY), "rev": revision + 1, "w": token}
    return Transaction("schema", (Put(SCHEMA_KEY, item, condition),), token, SCHEMA_KEY)
