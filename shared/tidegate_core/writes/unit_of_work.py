"""One transaction under construction: decisions read and write through it, without access to the store.

A decision is a plain function of what it reads. When it needs an item that was not read, `NotAtHand` stops it. The
shard writer reads the item and runs the decision again from the start. So decisions read as straight lines, and
several share a transaction.

Every item that only its owner writes carries `rev`. A write consumes the revision that was read: that is its
condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tidegate_core.rows import keys
from tidegate_core.rows.effects import Effect
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.keys import lease, shard_pk
from tidegate_core.rows.schema_version import NEWEST, newer_fields
from tidegate_core.rows.scope_suspension import ScopeSuspensions
from tidegate_core.rows.store_operations import (
    ACTIONS_PLANNED_MAX,
    TRANSACTION_BYTES_PLANNED_MAX,
    Action,
    Check,
    Condition,
    Delete,
    Item,
    Key,
    Put,
    RangeRead,
    Transaction,
    Update,
)
from tidegate_core.writes import conditions
from tidegate_core.writes.limit_permits import Permit, return_permits
from tidegate_core.writes.rate_counters import Counted, take_back
from tidegate_core.writes.read_cache import Derived, View
from tidegate_core.writes.staged_writes import UNREAD, Consumed, Staged, bytes_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")


class NotAtHand(Exception):
    """The decision needs items or ranges that were not read.

    Attributes:
        keys: Keys of items.
        ranges: Ranges of the shard's own rows, as (low, high).
        elsewhere: Ranges in any partition, of which the decision needs the first rows.
    """

    def __init__(
        self,
        keys: Sequence[Key] = (),
        ranges: Sequence[tuple[str, str]] = (),
        elsewhere: Sequence[RangeRead] = (),
    ) -> None:
        self.keys = tuple(keys)
        self.ranges = tuple(ranges)
        self.elsewhere = tuple(elsewhere)

    def __str__(self) -> str:
        # Built on demand: this exception is raised all the time and hardly ever printed.
        return f"keys {self.keys}, ranges {self.ranges}, elsewhere {self.elsewhere}"


class AlreadyThere(Exception):
    """A key that can be used only once is in use: an invariant broke, or the decision did not check."""


class TooNew(Exception):
    """A field that older releases misread would be written while such nodes may exist.

    An invariant broke; nothing is written.
    """


class TooLarge(Exception):
    """The transaction would exceed its planned actions or bytes; the decision belongs in the next one."""


class UnitOfWork:
    """Collects the writes of one transaction of one shard.

    Args:
        view: Cache of the shard's items. It stays correct between transactions because only the lease's owner writes
            them.
        shard: Shard whose lease the transaction checks.
        epoch: Epoch of the owner.
        controls: Scope suspensions under which the owner works; decisions query them, and the lease check demands
            their version.
        writes: Version in which rows are written (`rows/schema_version.py`).
        ended_through: Version of the scope suspensions that the shard has carried out completely; None: the present
            one.
    """

    def __init__(
        self,
        view: View,
        shard: int,
        epoch: int,
        controls: ScopeSuspensions,
        writes: int = NEWEST,
        ended_through: int | None = None,
    ) -> None:
        self._view = view
        self.shard = shard
        self._epoch = epoch
        self.controls = controls
        self.writes_version = writes
        self._ended_through = ended_through
        self._drops_anything = ended_through is not None and controls.names_dropped(ended_through)
        self._kept = Staged()
        self._open = Staged()

    def drops(self, namespace: str, pending_since: int) -> bool:
        """Returns whether work that is pending since an instant must end by a scope suspension whose last page may be
        outstanding.
        """
        if not self._drops_anything or self._ended_through is None:
            return False
        return self.controls.drops(namespace, pending_since, self._ended_through)

    # -- reading ----------------------------------------------------------------------------------------------------

    def item(self, key: Key) -> Item | None:
        """Returns the item as this transaction would leave it. Raises NotAtHand."""
        for staged in (self._open, self._kept):
            if key in staged.writes:
                return staged.writes[key]
        if not self._view.knows(key):
            raise NotAtHand(keys=[key])
        return self._view.item(key)

    def items(self, wanted: Sequence[Key]) -> list[Item | None]:
        """Returns several items like `item`, so that one read fetches them all."""
        unknown = [key for key in wanted if not self._is_staged(key) and not self._view.knows(key)]
        if unknown:
            raise NotAtHand(keys=unknown)
        return [self.item(key) for key in wanted]

    def record(self, record_type: type[R], key: Key) -> R | None:
        item = self.item(key)
        return None if item is None else self._view.record(record_type, key, item)

    @property
    def derived(self) -> Derived:
        """Cache of values derived from append-only texts."""
        return self._view.derived

    def range(self, low: str, high: str) -> list[Item]:
        """Returns the shard's items with `low <= sk <= high` in order, as this transaction would leave them."""
        known = self._view.range(low, high)
        if known is None:
            raise NotAtHand(ranges=[(low, high)])
        merged: dict[str, Item | None] = dict(known)
        for staged in (self._kept, self._open):
            for key, item in staged.writes.items():
                if key.table == "main" and key.pk == shard_pk(self.shard) and low <= key.sk <= high:
                    merged[key.sk] = item
        return [item for _, item in sorted(merged.items()) if item is not None]

    def elsewhere(self, rows: RangeRead) -> Sequence[Item]:
        """Returns the first rows of a range in any partition, `rows.limit` at most, read after all items of this
        decision.

        The transaction's own writes are not included. Raises NotAtHand.
        """
        known = self._view.elsewhere(rows)
        if known is None:
            raise NotAtHand(elsewhere=[rows])
        return known

    # -- writing ----------------------------------------------------------------------------------------------------

    def put(self, record: DataclassInstance, key: Key) -> None:
        """Writes a record that only its owner writes. The condition is the revision that was read, or absence."""
        before = self.item(key) or {}
        if new := [name for name in newer_fields(record, self.writes_version) if name not in before]:
            raise TooNew(f"{key.sk}: {', '.join(new)} must not be written in version {self.writes_version}")
        self._write(key, to_item(record, key))

    def put_new(self, record: DataclassInstance, key: Key, behind: int = 0) -> None:
        """Writes a record under an unused key, without a read; refused when an item exists.

        Args:
            record: Record to write.
            key: Key that was never used; otherwise pass `behind`.
            behind: Revision above which the item starts. A late write that consumes an earlier item under the key
                must not find its revision again.
        """
        if not self._is_staged(key):
            self._view.assume_absent(key)
        if self.item(key) is not None:
            raise AlreadyThere(key)
        self._write(key, to_item(record, key))
        if behind and key in self._open.consumed:
            self._open.consumed[key] = replace(self._open.consumed[key], behind=behind)

    def set_row(self, record: DataclassInstance, key: Key) -> None:
        """Writes a row without read or condition, for rows that state no more than their key, such as timer rows."""
        self._view.assume_unread(key)
        self._write(key, to_item(record, key))

    def delete(self, key: Key) -> None:
        """Deletes an item that only its owner writes, if it exists."""
        if self.item(key) is not None:
            self._write(key, None)

    def forget_row(self, key: Key) -> None:
        """Deletes a row without reading it, for rows whose presence is no condition: timer rows and
        counted inbox rows.
        """
        self._view.assume_unread(key)
        self._write(key, None)

    def _write(self, key: Key, item: Item | None) -> None:
        """Stores what the write consumes now, because the cache may evict the key before the commit."""
        self._open.writes[key] = item
        if key not in self._kept.consumed and key not in self._open.consumed:
            self._open.consumed[key] = self._seen(key)

    def _seen(self, key: Key) -> Consumed:
        if not self._view.knows(key):
            return UNREAD
        seen = self._view.item(key)
        return Consumed() if seen is None else Consumed(_revision(seen), bytes_of(seen))

    def apply(self, action: Action) -> None:
        """Adds an action with its own condition (limits, checks).

        Raises TooLarge when this transaction has an action on that item: DynamoDB takes one per item, so the decision
        goes into the next transaction.
        """
        if any(action.key in taken for taken in self._taken_keys()):
            raise TooLarge
        self._open.raw.append(action)

    def give_back(self, permit: Permit | Counted) -> None:
        """Returns a run's permit of a shared limit, or withdraws its admission from a rate.

        Several returns to one limit become one action. Raises TooLarge when this transaction takes a permit of that
        limit.
        """
        if any(raw.key == permit.limit for raw in (*self._kept.raw, *self._open.raw)):
            raise TooLarge
        self._open.returns[permit.limit] = (*self._open.returns.get(permit.limit, ()), permit)
        if isinstance(permit, Permit) and not permit.inline:
            self._open.raw.append(permit.removal())

    def require(self, key: Key, condition: Condition) -> None:
        """Adds a check, unless this transaction writes the item anyway; then its revision is the check."""
        if not any(raw.key == key for raw in (*self._kept.raw, *self._open.raw)):
            self._open.raw.append(Check(key, condition))

    def require_untouched(self, wanted: Iterable[Key]) -> None:
        """Protects a decision that uses cached values of these items or shared limits.

        Raises TooLarge when another decision of this transaction wrote one of them, or returned a permit of one. The
        cached values predate that, so the decision goes into the next transaction.
        """
        kept = self._kept
        if (kept.writes or kept.returns) and any(key in kept.writes or key in kept.returns for key in wanted):
            raise TooLarge

    def after(self, effect: Effect | Callable[[], None]) -> None:
        """Adds an effect, or a change of memory, that happens only after the commit."""
        self._open.effects.append(effect)

    def go_on(self) -> None:
        """States that the decision did part of its work: after the commit it runs again, before all queued decisions.

        Every such part must leave less to do.
        """
        self._open.goes_on = True

    def send_until(self, instant: int) -> None:
        """Limits how long the transaction may be resent to a store that gives no answer.

        After that the decision runs again.
        """
        self._open.sent_until = instant

    def _taken_keys(self) -> list[set[Key]]:
        staged = (self._kept, self._open)
        return [{raw.key for raw in each.raw} | set(each.returns) for each in staged]

    # -- one decision's share ---------------------------------------------------------------------------------------

    def keep(self) -> None:
        """Adopts the decision's writes. Raises TooLarge, and drops them, when the transaction would get too large."""
        size = self._kept.bytes_taken_over + self._open.size()
        actions = self._kept.actions + self._open.actions
        if not self._kept.is_empty and (actions > ACTIONS_PLANNED_MAX - 1 or size > TRANSACTION_BYTES_PLANNED_MAX):
            self.drop()
            raise TooLarge
        self._kept.bytes_taken_over = size
        self._kept.writes.update(self._open.writes)
        self._kept.consumed.update(self._open.consumed)
        self._kept.raw.extend(self._open.raw)
        for limit, permits in self._open.returns.items():
            self._kept.returns[limit] = (*self._kept.returns.get(limit, ()), *permits)
        self._kept.effects.extend(self._open.effects)
        self._kept.goes_on = self._open.goes_on
        self._kept.sent_until = _earlier(self._kept.sent_until, self._open.sent_until)
        self._open = Staged()

    def drop(self) -> None:
        """Discards the decision's writes."""
        self._open = Staged()

    @property
    def is_empty(self) -> bool:
        return self._kept.is_empty

    @property
    def goes_on(self) -> bool:
        """Whether the last adopted decision has more to do; then no further decision may be adopted."""
        return self._kept.goes_on

    @property
    def sent_until(self) -> int | None:
        """The earliest instant of `send_until` when `void` can make the transaction impossible; None: it is sent until
        its outcome is known.
        """
        is_voidable = any(each.revision is not None for each in self._kept.consumed.values())
        return self._kept.sent_until if is_voidable else None

    @property
    def actions(self) -> int:
        """Number of actions so far, without the lease check."""
        return self._kept.actions + self._open.actions

    @property
    def effects(self) -> list[Effect | Callable[[], None]]:
        return self._kept.effects

    @property
    def writes(self) -> dict[Key, Item | None]:
        return self._kept.writes

    def transaction(self, name: str, token: str) -> Transaction:
        """Returns the transaction: the lease check first, then every write with the condition for what it consumes."""
        actions: list[Action] = [self._lease_check()]
        witness: Key | None = None
        for key, item in self._kept.writes.items():
            action = self._guarded(key, item, token)
            if action is not None:
                actions.append(action)
                if isinstance(action, Put) and witness is None:
                    witness = key
        written = {action.key for action in actions}
        actions.extend(raw for raw in self._kept.raw if not (isinstance(raw, Check) and raw.key in written))
        actions.extend(_given_back(limit, permits) for limit, permits in self._kept.returns.items())
        return Transaction(name, tuple(actions), token, witness)

    def behind(self) -> dict[Key, int]:
        """Returns the revisions above which new items start, where it is not 0."""
        return {key: each.behind for key, each in self._kept.consumed.items() if each.behind}

    def void(self, token: str) -> Transaction | None:
        """Returns a transaction that makes this one impossible, however late it arrives: it consumes one of the same
        revisions.

        It checks the lease as well, because it may be late itself. None when this transaction only creates items. A
        refusal must show whether this transaction was applied. An item that it leaves in the store shows that best,
        by its token.
        """
        revisions = [(key, each.revision) for key, each in self._kept.consumed.items() if each.revision is not None]
        if not revisions:
            return None
        key, revision = min(revisions, key=lambda each: self._tells(each[0]))
        change = "SET #rev = #rev + :one, #w = :w"
        update = Update(key, change, {"#w": "w"}, {":one": 1, ":w": token}, conditions.unchanged(revision))
        return Transaction("void", (self._lease_check(), update), token, key)

    def removes(self, key: Key) -> bool:
        """Returns whether the item existed and this transaction removes it."""
        return key in self.writes and self.writes[key] is None

    def _tells(self, key: Key) -> int:
        """Returns how poorly an item shows the outcome, 0 best.

        The gate may have changed a run; a mere check leaves no token.
        """
        if self.writes.get(key) is not None:
            return 2 if key.sk.startswith(keys.RUN_PREFIX) else 0
        return 1 if self.removes(key) else 3

    def _lease_check(self) -> Check:
        return Check(lease(self.shard), conditions.holds_lease(self._epoch, self.controls.version))

    def _guarded(self, key: Key, item: Item | None, token: str) -> Action | None:
        consumed = self._kept.consumed[key]
        condition = consumed.condition()
        if item is None:
            if consumed.conditional and consumed.revision is None:
                return None  # Written and deleted within this transaction: the store gets no action for it.
            return Delete(key, condition)
        return Put(key, {**item, "rev": (consumed.revision or consumed.behind) + 1, "w": token}, condition)

    def _is_staged(self, key: Key) -> bool:
        return key in self._open.writes or key in self._kept.writes


def _given_back(limit: Key, permits: Sequence[Permit | Counted]) -> Update:
    counted = [each for each in permits if isinstance(each, Counted)]
    return (
        take_back(limit, counted)
        if counted
        else return_permits(limit, [each for each in permits if isinstance(each, Permit)])
    )


def _earlier(first: int | None, second: int | None) -> int | None:
    return min((each for each in (first, second) if each is not None), default=None)


def _revision(item: Item | None) -> int:
    revision = 0 if item is None else item.get("rev", 0)
    assert isinstance(revision, int)
    return revision
