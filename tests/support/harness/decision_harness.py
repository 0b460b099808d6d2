"""The rows of one shard and one decision at a time: what the shard writer does, without the shard writer. For tests of decisions."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, TypeVar

from tests.support.builders import HOUR, NOW
from tidegate_core.engine.decision import Decision
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Effect, Refused
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS
from tidegate_core.rows.store_operations import Item, Key, Put, RangeRead, Table, Transaction
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.read_cache import View
from tidegate_core.writes.settlement import Settlement
from tidegate_core.writes.unit_of_work import NotAtHand, UnitOfWork
from tidegate_memory.store import MemoryStore

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")


class DecisionHarness:
    """The rows of shard 0 and one decision at a time: what the shard writer does, without the shard writer.

    Attributes:
        memory: What an owner would keep; learns all that is written.
        told: Effects of the last decision.
        refused: Keys whose condition was false in the last decision's transaction.
        reads: How often the last decision asked for what was not at hand: each would be a round trip.
    """

    def __init__(self, *rows: DataclassInstance) -> None:
        self.store = MemoryStore()
        self.memory = ShardCache(0, 4)
        self.memory.horizon = NOW + 10 * 365 * 24 * HOUR
        self.told: list[Effect] = []
        self.refused: list[Key] = []
        self.reads = 0
        self._tokens = count(1)
        lease = keys.lease(0)
        self.store.write([Put(lease, {"pk": lease.pk, "sk": lease.sk, "epoch": 1, "controls": 0})])
        self.lay(*rows)

    def lay(self, *rows: DataclassInstance) -> None:
        """Puts rows there as an earlier transaction would have left them."""
        for row in rows:
            key: Key = row.key(0)  # type: ignore[attr-defined]  # every record of ours names its key
            item: Item = {**to_item(row, key), "rev": 1}
            self.store.write([Put(key, item)])
            self.memory.apply_row(key, item)
            if isinstance(row, InboxRow):
                self.memory.inbox[key] = row

    def decide(self, decision: Decision, now: int = NOW) -> Transaction | None:
        """Runs the decision and commits it; returns the transaction, or None when there was nothing to write."""
        transaction, unit = self.prepare(decision, now)
        self.told, self.refused = [], []
        if transaction is not None:
            _, verdict = Settlement(transaction).answered(self.store.transact(transaction))
            if isinstance(verdict, Refused):
                self.refused = [key for key, _ in verdict.failed]
                return transaction
            for key in unit.writes:
                self.memory.apply_row(key, self.store.peek(key))
        for effect in unit.effects:
            if callable(effect):
                effect()
            else:
                self.told.append(effect)
        return transaction

    def prepare(self, decision: Decision, now: int = NOW) -> tuple[Transaction | None, UnitOfWork]:
        """Runs the decision without committing it."""
        view = View(0)
        self.reads = 0
        while True:
            unit = UnitOfWork(view, 0, 1, NO_SUSPENSIONS)
            try:
                decision.decide(unit, now)
            except NotAtHand as need:
                self.reads += 1
                view.learn(need.keys, self.store.get(need.keys))
                for low, high in need.ranges:
                    view.learn_range(low, high, self._range(low, high))
                for rows in need.elsewhere:
                    view.learn_elsewhere(rows, self.store.query(rows).items)
                continue
            unit.keep()
            return (None if unit.is_empty else unit.transaction(decision.name, f"desk/{next(self._tokens)}")), unit

    def record(self, record_type: type[R], key: Key) -> R | None:
        item = self.store.peek(key)
        return None if item is None else from_item(record_type, item)

    def records(self, record_type: type[R], prefix: str) -> list[R]:
        """Returns the records of the shard whose sort key begins so, of either table, in order."""
        return [from_item(record_type, item) for item in rows_of(self.store, prefix) if item["pk"] == keys.shard_pk(0)]

    def ledger(self) -> list[tuple[str, str, str]]:
        """Returns (job id, disposition, reason) of all that has ended."""
        return [(row.job_id, row.disposition, row.reason) for row in self.records(LedgerRow, "L#")]

    def _range(self, low: str, high: str) -> list[Item]:
        return list(self.store.query(RangeRead(keys.shard_pk(0), low, high, limit=100_000)).items)


_TABLES: tuple[Table, ...] = ("main", "history")


def rows_of(store: MemoryStore, prefix: str) -> list[Item]:
    """Returns the items whose sort key begins so, of both tables, in order of their keys."""
    found = [item for table in _TABLES for item in store.items(table) if str(item["sk"]).startswith(prefix)]
    return sorted(found, key=lambda item: (str(item["pk"]), str(item["sk"])))
