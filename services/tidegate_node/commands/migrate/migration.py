"""`tidegate migrate`: moves rows to a newer version, and raises the version in which nodes write. It may be killed
after each step.

The item `SCHEMA` records finished steps; a repeated step has no effect. Reads and writes are paced, so that nodes keep
serving.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tidegate_core.explain.migration_blockers import behind, in_the_way
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Committed, Refused, Unavailable
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.keys import SCHEMA_KEY
from tidegate_core.rows.node_status import PAGES_MAX, NodeStatus, all_cards, owner_of
from tidegate_core.rows.schema_version import THIS_RELEASE, Readable, StoreSchema
from tidegate_core.rows.store_operations import Item, RangeRead, Transaction
from tidegate_core.writes.row_migration import MOVES, Move, Place, move_schema, range_of
from tidegate_node.startup_checks import NotYet, StartRefused
from tidegate_ports.store import Store

PAGE: Final = 100
"""Rows of one read; after each page with changes the item records the position."""
LEASES_PER_READ: Final = 100

Settle = Callable[[Transaction], Committed | Refused | Unavailable]


class InTheWay(Exception):
    """A process of an older release lives, or may live. The version was not raised."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)


@dataclass(slots=True)
class Migration:
    """One call of the command.

    Attributes:
        store: The tables.
        settle: Function that sends a transaction until it is settled.
        shards: Number of shards.
        pause: Callback before each read and each write.
        wait: Callback between two checks of the nodes; False when the patience is over.
        now: Function that returns milliseconds since the epoch.
        token: Function that returns a unique token at each call.
        say: Function that prints a line.
        dry_run: Whether to change nothing.
        readable: Versions that this release reads and writes.
        moves: Changes of rows.
        moved: Number of rows that each move has written, or would write.
    """

    store: Store
    settle: Settle
    shards: int
    pause: Callable[[], None]
    wait: Callable[[], bool]
    now: Callable[[], int]
    token: Callable[[], str]
    say: Callable[[str], None]
    dry_run: bool = False
    readable: Readable = THIS_RELEASE
    moves: Sequence[Move] = MOVES
    moved: Counter[str] = field(default_factory=Counter)
    _item: Item | None = None

    def run(self, *, finish: bool) -> StoreSchema:
        """Does the remaining steps, and returns the resulting versions.

        Raises:
            InTheWay: `finish`, and a process of an older release lives.
            StartRefused: The store is newer than this release, or older than it can read.
            NotYet: Another step has to come first; run it again.
            StoreUnavailable: The store does not answer; run it again.
        """
        schema = self._look()
        if (refusal := replace(schema, closing=None).refusal(self.readable)) is not None:
            raise StartRefused(refusal)
        newest = self.readable.newest
        if schema.rows_from >= newest:
            return schema
        if finish and schema.writes < newest:
            schema = self._raise_version(schema, newest)
        if schema.writes < newest or self.dry_run:
            return self._move_all(schema, newest)
        self._until_all_write(newest)
        # From here on no node writes a row of an older version, so one complete pass moves all of them.
        return self._save(replace(self._move_all(self._look(), newest), rows_from=newest, cursor=None))

    # -- the version ----------------------------------------------------------------------------------------------------

    def _raise_version(self, schema: StoreSchema, newest: int) -> StoreSchema:
        """Announces the new version, then checks the nodes again. A node that acquires a shard in between reads the
        announcement.
        """
        if reasons := self._in_the_way(newest):
            if schema.closing is not None and not self.dry_run:
                self._save(replace(schema, closing=None))
            raise InTheWay(reasons)
        if self.dry_run:
            self.say(f"nodes would write version {newest} instead of {schema.writes}")
            return schema
        schema = self._save(replace(schema, closing=newest))
        if reasons := self._in_the_way(newest):
            self._save(replace(schema, closing=None))
            raise InTheWay(reasons)
        # Reset the cursor: older nodes have written rows before it.
        schema = self._save(replace(schema, writes=newest, closing=None, cursor=None))
        self.say(f"nodes write version {newest} from now on; older releases cannot be run any more")
        return schema

    def _in_the_way(self, version: int) -> list[str]:
        return in_the_way(self._cards(), self._owners(), version, self.now())

    def _until_all_write(self, version: int) -> None:
        """Waits until all nodes write the version. Raises NotYet."""
        while True:
            late = behind(self._cards(), version, self.now())
            if not late and not (reasons := self._in_the_way(version)):
                return
            if not self.wait():
                raise NotYet(
                    "; ".join(reasons if not late else [f"nodes {', '.join(late)} still write an older version"])
                )

    def _cards(self) -> list[NodeStatus]:
        """Returns all status rows. Many rows of dead processes may come before the row of a live one."""
        items: list[Item] = []
        after: str | None = None
        for _ in range(PAGES_MAX):
            self.pause()
            page = self.store.query(all_cards(after))
            items += page.items
            after = page.next_after
            if after is None:
                return [from_item(NodeStatus, item) for item in items]
        raise NotYet(
            f"more than {len(items)} cards of processes: some of them may live and are not seen; those of the dead go within a day"
        )

    def _owners(self) -> Mapping[int, str | None]:
        found: dict[int, str | None] = {}
        for first in range(0, self.shards, LEASES_PER_READ):
            some = range(first, min(first + LEASES_PER_READ, self.shards))
            self.pause()
            items = self.store.get([keys.lease(shard) for shard in some])
            found |= {shard: owner_of(items.get(keys.lease(shard))) for shard in some}
        return found

    # -- the rows -------------------------------------------------------------------------------------------------------

    def _move_all(self, schema: StoreSchema, newest: int) -> StoreSchema:
        """Continues an interrupted pass to this version; returns the resulting versions."""
        place = Place(newest) if schema.cursor is None else Place.parse(schema.cursor)
        if place.version != newest:
            place = Place(newest)
        for number in range(place.move, len(self.moves)):
            move = self.moves[number]
            first = place.shard if number == place.move else 0
            if not schema.rows_from < move.version <= newest:
                continue
            for shard in range(first, self.shards):
                begin = place if (number, shard) == (place.move, place.shard) else Place(newest, number, shard)
                schema = self._move_shard(schema, move, begin)
        return schema if schema.cursor is None or self.dry_run else self._save(replace(schema, cursor=None))

    def _move_shard(self, schema: StoreSchema, move: Move, place: Place) -> StoreSchema:
        pk, low, high = range_of(move, place)
        after: str | None = place.after or None
        while True:
            self.pause()
            page = self.store.query(RangeRead(pk, low, high, limit=PAGE, after=after))
            written = sum(self._move_row(move, item) for item in page.items)
            after = page.next_after
            if written and not self.dry_run:
                # Without a write there is no progress to record.
                last = str(page.items[-1]["sk"])
                schema = self._save(replace(schema, cursor=replace(place, after=last).text()))
            if after is None:
                return schema

    def _move_row(self, move: Move, item: Item) -> bool:
        change = move.change(item)
        if change is None:
            return False
        if not self.dry_run:
            self.pause()
            verdict = self.settle(Transaction("migrate", (change,), self.token(), None))
            if isinstance(verdict, Unavailable):
                raise NotYet(f"store: {verdict.what}")
            if isinstance(verdict, Refused):
                return False  # The row is gone, or its owner has written it again in the newer form.
        self.moved[move.name] += 1
        return True

    # -- the item -------------------------------------------------------------------------------------------------------

    def _look(self) -> StoreSchema:
        self.pause()
        self._item = self.store.get([SCHEMA_KEY]).get(SCHEMA_KEY)
        return StoreSchema.of(self._item)

    def _save(self, after: StoreSchema) -> StoreSchema:
        """Writes the item. Raises NotYet if another call of the command has moved the item, or if the outcome is
        unknown.
        """
        verdict = self.settle(move_schema(self._item, after, self.token()))
        if isinstance(verdict, Refused):
            raise NotYet("another `tidegate migrate` is running; run this again when it has ended")
        if isinstance(verdict, Unavailable):
            raise NotYet(f"store: {verdict.what}")
        if self._look() != after:
            raise NotYet("another `tidegate migrate` is running; run this again when it has ended")
        return after
