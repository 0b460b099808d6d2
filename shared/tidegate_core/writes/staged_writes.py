"""The share of one decision in a transaction: its writes, what they consume, and their size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate_core.rows.effects import Effect
from tidegate_core.rows.store_operations import Action, Condition, Item, Key, Value
from tidegate_core.writes import conditions
from tidegate_core.writes.limit_permits import Permit
from tidegate_core.writes.rate_counters import Counted

RAW_ACTION_BYTES = 4_000
"""Estimated bytes of an action on an item that was not read: lease, state, or a limit with its holders."""


@dataclass(frozen=True, slots=True)
class Consumed:
    """What a write consumes, as it was when the write was staged.

    Attributes:
        revision: Revision of the item; None: no item may exist.
        size: Bytes of the item.
        conditional: False for rows whose presence is no condition.
        behind: Highest revision of an earlier item under the key that a late write may still consume.
    """

    revision: int | None = None
    size: int = 0
    conditional: bool = True
    behind: int = 0

    def condition(self) -> Condition | None:
        if not self.conditional:
            return None
        return conditions.absent() if self.revision is None else conditions.unchanged(self.revision)


UNREAD = Consumed(conditional=False)


@dataclass(slots=True)
class Staged:
    """The share of one decision; dropped when the decision does not complete."""

    writes: dict[Key, Item | None] = field(default_factory=dict)
    consumed: dict[Key, Consumed] = field(default_factory=dict)
    raw: list[Action] = field(default_factory=list)
    returns: dict[Key, tuple[Permit | Counted, ...]] = field(default_factory=dict)
    effects: list[Effect | Callable[[], None]] = field(default_factory=list)
    bytes_taken_over: int = 0
    goes_on: bool = False
    sent_until: int | None = None

    @property
    def actions(self) -> int:
        return len(self.writes) + len(self.raw) + len(self.returns)

    @property
    def is_empty(self) -> bool:
        return not self.actions

    def size(self) -> int:
        """Returns the bytes of the items before and after: at least as many as DynamoDB counts."""
        written = sum(bytes_of(item) for item in self.writes.values() if item is not None)
        consumed = sum(each.size for each in self.consumed.values())
        return written + consumed + RAW_ACTION_BYTES * (len(self.raw) + len(self.returns))


def bytes_of(value: Value) -> int:
    """Returns the approximate size of an item or value in DynamoDB."""
    match value:
        case int():
            return 8
        case str():
            return len(value) if value.isascii() else len(value.encode())
        case bytes():
            return len(value)
        case dict():
            size = sum(map(len, value))
            for each in value.values():
                size += len(each) if type(each) is str and each.isascii() else bytes_of(each)
            return size
        case list() | frozenset():
            return sum(1 + bytes_of(each) for each in value)
        case _:
            return 8
