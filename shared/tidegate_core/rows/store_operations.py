"""Store operations as values, for the DynamoDB adapter and the simulated store alike.

The expression strings here are sent verbatim, so the simulation evaluates the same text as DynamoDB. Numbers are
integers only, because DynamoDB's decimals and Python's floats do not round-trip. Sets are `frozenset[str]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

Scalar: TypeAlias = str | int | bytes | bool | None
Value: TypeAlias = "Scalar | list[Value] | dict[str, Value] | frozenset[str]"
Item: TypeAlias = dict[str, Value]

Table: TypeAlias = Literal["main", "history"]
"""`main` holds all items that decisions read; `history` holds ended runs, ledger and closed tallies.

The cluster's prefix precedes these names.
"""

ACTIONS_PER_TRANSACTION_MAX = 100
"""DynamoDB's limit. Builders stay below `ACTIONS_PLANNED_MAX`, so that a late addition never reaches it."""
ACTIONS_PLANNED_MAX = 90
TRANSACTION_BYTES_MAX = 4_000_000
"""DynamoDB's limit for all items of a transaction. Builders stay below the next constant."""
TRANSACTION_BYTES_PLANNED_MAX = 3_000_000
ITEM_BYTES_MAX = 400_000


class Key(NamedTuple):
    """Primary key of an item. It contains the table, so that no call can confuse the two."""

    pk: str
    sk: str
    table: Table = "main"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition expression with its own placeholders.

    Attributes:
        expression: DynamoDB condition expression. Attribute names are `#name`, values `:name`.
        names: Placeholder to attribute name, for example `{"#epoch": "epoch"}`.
        values: Placeholder to value.
    """

    expression: str
    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Put:
    """Replaces the whole item, `pk` and `sk` included."""

    key: Key
    item: Item
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """Applies an update expression; its placeholders and those of the condition are merged and must not clash."""

    key: Key
    expression: str
    names: Mapping[str, str]
    values: Mapping[str, Value]
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes the item; an absent item is no error unless the condition demands it."""

    key: Key
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """Demands a condition of an item that the transaction does not write."""

    key: Key
    condition: Condition


Action: TypeAlias = Put | Update | Delete | Check


@dataclass(frozen=True, slots=True)
class Transaction:
    """An all-or-nothing write of at most 100 actions on distinct items.

    Attributes:
        name: Purpose (`acquire`, `fire`, `cursor`, ...), by which metrics, fault coverage and logs count it.
        actions: Actions, in the order in which refusals are reported.
        token: Unique per attempt of the author; stored as attribute `w` of the witness, and used as the client token.
        witness: Item that this transaction writes with `w = token`, and that only successors of its author overwrite.
            After a lost answer, a read of it shows whether the transaction took effect. None when the transaction
            puts no item: then a refusal after a lost answer proves nothing, and the author must check.
    """

    name: str
    actions: tuple[Action, ...]
    token: str
    witness: Key | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Unconditional puts and deletes, in any number and order.

    Each key contains a version, so late or repeated ones have no new effect.
    """

    name: str
    actions: tuple[Put | Delete, ...]


@dataclass(frozen=True, slots=True)
class RangeRead:
    """A strongly consistent, ascending read of `low <= sk <= high` under one partition key.

    Attributes:
        limit: Maximum number of items; a page ends at 1 MB even when more exist.
        after: Sort key after which to continue (the last one of the page before).
        newest_first: True for descending order.
    """

    pk: str
    low: str
    high: str
    limit: int = 1_000
    after: str | None = None
    table: Table = "main"
    newest_first: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """Result of a `RangeRead`: items in key order, and the key to continue `after`, or None at the end."""

    items: tuple[Item, ...]
    next_after: str | None


# -- raw answers to one send of a transaction --------------------------------------


class RefusalCode(NamedTuple):
    """Why one action of a cancelled transaction failed.

    `code` is DynamoDB's: `None`, `ConditionalCheckFailed`, `TransactionConflict`, `ThrottlingError`,
    `ProvisionedThroughputExceeded`, `ItemCollectionSizeLimitExceeded`, `ValidationError`. `item` is the stored item
    after a failed condition (ReturnValuesOnConditionCheckFailure=ALL_OLD), or None when there was none.
    """

    code: str
    item: Item | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """The store applied the transaction."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The store refused the transaction; one code per action, in order."""

    reasons: tuple[RefusalCode, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer came. The transaction was applied, may be applied later, or never will be."""


@dataclass(frozen=True, slots=True)
class Throttled:
    """The store rejected the whole request and applied nothing."""


RawOutcome: TypeAlias = Applied | Cancelled | Lost | Throttled
