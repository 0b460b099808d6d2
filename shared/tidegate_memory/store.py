"""The store in memory, with DynamoDB's semantics: second implementation of the port.

It evaluates the same expressions that are sent to DynamoDB. It never loses an answer, throttles or reports a conflict;
the simulator's wrapper does that. Where DynamoDB Local and AWS differ, it takes the stricter side, so that code which
works here works on both:

- An update that cannot be computed (missing operand, wrong type) makes the whole request invalid, even when
  another action's condition is false.
- A page that is filled up to its limit names a key to continue after, even when nothing follows.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tidegate_core.rows.store_operations import (
    ACTIONS_PER_TRANSACTION_MAX,
    TRANSACTION_BYTES_MAX,
    Applied,
    Cancelled,
    Check,
    Delete,
    Item,
    Key,
    Page,
    Put,
    RangeRead,
    RawOutcome,
    RefusalCode,
    Table,
    Transaction,
)
from tidegate_memory.expressions.attribute_types import MUTABLE_TYPES, copied
from tidegate_memory.item_actions import Outcome, check_key, outcome_of
from tidegate_memory.table import MemoryTable, Stored
from tidegate_ports.store import StoreRequestInvalid

PAGE_BYTES_MAX: Final = 1_048_576
"""Size of a page: a query ends after the item that reaches it."""
READ_UNIT_BYTES: Final = 4_096
TOKENS_REMEMBERED_MAX: Final = 10_000
"""Number of remembered client tokens. DynamoDB remembers each for ten minutes; without a clock, the newest are
remembered here."""

WrittenBatch: TypeAlias = Sequence[Put | Delete]
BeforeImages: TypeAlias = Mapping[Key, Item | None]
Monitor: TypeAlias = Callable[[Transaction | WrittenBatch, BeforeImages], None]
"""Called under the store's lock after each applied write, with the items before it, which it must not change."""


@dataclass(slots=True)
class Usage:
    """Calls, and the read or write units that DynamoDB would bill for them."""

    calls: int = 0
    units: int = 0


class MemoryStore:
    """Two tables in memory. Thread-safe; each call is atomic.

    Attributes:
        usage: Calls and units by transaction name, and for `batch`, `get` and `query`.
        on_applied: Monitor of writes; its exceptions reach the caller of the write.
    """

    def __init__(
        self,
        on_applied: Monitor | None = None,
        *,
        remembers_tokens: bool = True,
        checks_witness: bool = True,
    ) -> None:
        """Creates an empty store.

        Args:
            on_applied: Monitor of writes.
            remembers_tokens: False simulates DynamoDB after ten minutes: a repeated transaction is evaluated again.
            checks_witness: Refuses a transaction that does not write its token to its witness: it could not be settled.
        """
        self.usage: defaultdict[str, Usage] = defaultdict(Usage)
        self.on_applied = on_applied
        self._remembers_tokens = remembers_tokens
        self._checks_witness = checks_witness
        self._tables: dict[Table, MemoryTable] = {"main": MemoryTable(), "history": MemoryTable()}
        self._tokens: OrderedDict[str, Transaction] = OrderedDict()
        self._lock = threading.RLock()

    # -- the port ---------------------------------------------------------------------------------------------------

    def transact(self, transaction: Transaction) -> RawOutcome:
        _check_shape(transaction)
        with self._lock:
            if self._was_applied(transaction):
                return Applied()
            befores = {action.key: self._stored(action.key) for action in transaction.actions}
            outcomes = [outcome_of(action, befores[action.key]) for action in transaction.actions]
            self._count(transaction, outcomes)
            if not all(outcome.holds for outcome in outcomes):
                return _cancelled(transaction, outcomes, befores)
            self._check_witness(transaction, outcomes)
            for action, outcome in zip(transaction.actions, outcomes, strict=True):
                if not isinstance(action, Check):
                    self._replace(action.key, outcome.after)
            self._remember(transaction)
            self._report(transaction, befores)
            return Applied()

    def write(self, actions: Sequence[Put | Delete]) -> Sequence[Put | Delete]:
        distinct = distinct_by_key(actions)
        with self._lock:
            befores = {key: self._stored(key) for key in distinct}
            outcomes = [(key, outcome_of(action, befores[key])) for key, action in distinct.items()]
            usage = self.usage["batch"]
            usage.calls += 1
            for key, outcome in outcomes:
                self._replace(key, outcome.after)
                usage.units += outcome.write_units
            self._report(tuple(distinct.values()), befores)
        return ()

    def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        found: dict[Key, Item] = {}
        with self._lock:
            usage = self.usage["get"]
            usage.calls += 1
            for key in dict.fromkeys(keys):
                check_key(key)
                stored = self._stored(key)
                usage.units += _read_units(stored.size if stored else 0)
                if stored is not None:
                    found[key] = _copy(stored.item)
        return found

    def query(self, wanted: RangeRead) -> Page:
        if wanted.limit < 1:
            raise StoreRequestInvalid(f"{wanted}: the limit is below 1")
        items: list[Item] = []
        size = 0
        more = False
        with self._lock:
            rows = self._tables[wanted.table].between(
                wanted.pk, wanted.low, wanted.high, after=wanted.after, descending=wanted.newest_first
            )
            for stored in rows:
                items.append(_copy(stored.item))
                size += stored.size
                more = len(items) >= wanted.limit or size >= PAGE_BYTES_MAX
                if more:
                    break
            usage = self.usage["query"]
            usage.calls += 1
            usage.units += _read_units(size)
        return Page(tuple(items), str(items[-1]["sk"]) if more else None)

    # -- for tests and monitors ---------------------------------------------------------------------------------------

    def items(self, table: Table = "main") -> Iterator[Item]:
        """Yields copies of all items, for checks while no write is running."""
        with self._lock:
            stored = list(self._tables[table].all())
        return (_copy(entry.item) for entry in stored)

    def stored(self, table: Table = "main") -> Iterator[Item]:
        """Yields the stored items without copying, which the caller must not change; for checks of all items every
        second.
        """
        with self._lock:
            stored = list(self._tables[table].all())
        return (entry.item for entry in stored)

    def look(self, key: Key) -> Item | None:
        """Returns the stored item without copying, which the caller must not change."""
        with self._lock:
            stored = self._stored(key)
        return None if stored is None else stored.item

    def peek(self, key: Key) -> Item | None:
        """Returns a copy of one item without counting the read."""
        with self._lock:
            stored = self._stored(key)
        return None if stored is None else _copy(stored.item)

    def expire(self, now: int) -> int:
        """Removes expired items (`expires_at`, seconds), as DynamoDB does within days, and returns their number.

        Args:
            now: Milliseconds since the epoch.
        """
        with self._lock:
            stored = [(table, entry.item) for table in self._tables for entry in list(self._tables[table].all())]
            gone = [
                (table, item)
                for table, item in stored
                if isinstance(until := item.get("expires_at"), int) and until < now // 1000
            ]
            for table, item in gone:
                self._tables[table].delete(str(item["pk"]), str(item["sk"]))
        return len(gone)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _stored(self, key: Key) -> Stored | None:
        return self._tables[key.table].get(key.pk, key.sk)

    def _replace(self, key: Key, after: Stored | None) -> None:
        table = self._tables[key.table]
        if after is None:
            table.delete(key.pk, key.sk)
        else:
            table.put(key.pk, key.sk, after)

    def _was_applied(self, transaction: Transaction) -> bool:
        known = self._tokens.get(transaction.token)
        if known is None:
            return False
        if known != transaction:
            raise StoreRequestInvalid(f"transaction {transaction.name}: its token belongs to another one")
        self.usage[transaction.name].calls += 1
        return True

    def _remember(self, transaction: Transaction) -> None:
        # A single action is sent as a plain write, which has no client token.
        if not self._remembers_tokens or len(transaction.actions) == 1:
            return
        self._tokens[transaction.token] = transaction
        if len(self._tokens) > TOKENS_REMEMBERED_MAX:
            self._tokens.popitem(last=False)

    def _count(self, transaction: Transaction, outcomes: Sequence[Outcome]) -> None:
        if len(outcomes) > 1 and sum(outcome.size for outcome in outcomes) > TRANSACTION_BYTES_MAX:
            raise StoreRequestInvalid(f"transaction {transaction.name}: more than {TRANSACTION_BYTES_MAX} bytes")
        usage = self.usage[transaction.name]
        usage.calls += 1
        price = 1 if len(outcomes) == 1 else 2
        usage.units += price * sum(outcome.write_units for outcome in outcomes)

    def _check_witness(self, transaction: Transaction, outcomes: Sequence[Outcome]) -> None:
        if not self._checks_witness or transaction.witness is None:
            return
        for action, outcome in zip(transaction.actions, outcomes, strict=True):
            if action.key == transaction.witness and not isinstance(action, Check):
                if outcome.after is None or outcome.after.item.get("w") != transaction.token:
                    break
                return
        raise StoreRequestInvalid(f"transaction {transaction.name}: {transaction.witness} does not get w = its token")

    def _report(self, written: Transaction | WrittenBatch, befores: Mapping[Key, Stored | None]) -> None:
        if self.on_applied is not None:
            self.on_applied(written, {key: None if stored is None else stored.item for key, stored in befores.items()})


def distinct_by_key(actions: Sequence[Put | Delete]) -> dict[Key, Put | Delete]:
    """Returns a batch's actions by key, identical repeats once.

    Raises:
        StoreRequestInvalid: Two different actions for one key (a batch has no order), or a condition.
    """
    distinct: dict[Key, Put | Delete] = {}
    for action in actions:
        if action.condition is not None:
            raise StoreRequestInvalid(f"{action.key}: batches have no conditions")
        if distinct.setdefault(action.key, action) != action:
            raise StoreRequestInvalid(f"{action.key}: two different actions of one batch")
    return distinct


def _check_shape(transaction: Transaction) -> None:
    actions = transaction.actions
    if not 1 <= len(actions) <= ACTIONS_PER_TRANSACTION_MAX:
        raise StoreRequestInvalid(f"transaction {transaction.name}: {len(actions)} actions")
    if len({action.key for action in actions}) != len(actions):
        raise StoreRequestInvalid(f"transaction {transaction.name}: two actions on one item")
    if all(isinstance(action, Check) for action in actions):
        raise StoreRequestInvalid(f"transaction {transaction.name}: it writes nothing")


def _cancelled(
    transaction: Transaction, outcomes: Sequence[Outcome], befores: Mapping[Key, Stored | None]
) -> Cancelled:
    def reason(key: Key, outcome: Outcome) -> RefusalCode:
        if outcome.holds:
            return RefusalCode("None")
        stored = befores[key]
        return RefusalCode("ConditionalCheckFailed", None if stored is None else _copy(stored.item))

    return Cancelled(
        tuple(reason(action.key, outcome) for action, outcome in zip(transaction.actions, outcomes, strict=True))
    )


def _read_units(size: int) -> int:
    return max(1, -(-size // READ_UNIT_BYTES))


def _copy(item: Item) -> Item:
    # Most items hold nothing mutable. This is the most frequent call of the simulation.
    is_flat = MUTABLE_TYPES.isdisjoint(map(type, item.values()))
    return dict(item) if is_flat else {name: copied(value) for name, value in item.items()}
