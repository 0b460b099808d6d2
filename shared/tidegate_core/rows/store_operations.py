"""What the core asks of the store, as values that both the DynamoDB adapter and the simulated store carry out.

The expression strings in here are sent verbatim: what the simulation evaluates is what DynamoDB evaluates. Numbers are
integers only (DynamoDB's decimals and Python's floats do not round-trip); sets are `frozenset[str]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

Scalar: TypeAlias = str | int | bytes | bool | None
Value: TypeAlias = "Scalar | list[Value] | dict[str, Value] | frozenset[str]"
Item: TypeAlias = dict[str, Value]

Table: TypeAlias = Literal["main", "history"]
"""`main` decides; `history` holds what has ended (ledger, ended runs, closed tallies). Names get the cluster's prefix."""

ACTIONS_PER_TRANSACTION_MAX = 100
"""DynamoDB's own limit. Builders stay below `ACTIONS_PLANNED_MAX` so that a late addition never meets it."""
ACTIONS_PLANNED_MAX = 90
TRANSACTION_BYTES_MAX = 4_000_000
"""DynamoDB's own limit of all items of a transaction. What is planned together stays below the next one."""
TRANSACTION_BYTES_PLANNED_MAX = 3_000_000
ITEM_BYTES_MAX = 400_000


class Key(NamedTuple):
    """Primary key of an item; `table` is part of it so that no call can forget which table it means."""

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
    """Replaces the whole item (which contains `pk` and `sk`)."""

    key: Key
    item: Item
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """An update expression; its placeholders and the condition's are merged and must not clash."""

    key: Key
    expression: str
    names: Mapping[str, str]
    values: Mapping[str, Value]
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes the item; absent items are fine unless the condition says otherwise."""

    key: Key
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on an item that the transaction does not write."""

    key: Key
    condition: Condition


Action: TypeAlias = Put | Update | Delete | Check


@dataclass(frozen=True, slots=True)
class Transaction:
    """All or nothing, at most 100 actions on distinct items.

    Attributes:
        name: What it is for (`acquire`, `fire`, `cursor`, ...): metrics, fault coverage and logs are counted by it.
        actions: The actions, in the order in which refusals are reported.
        token: Unique per attempt of the author; written as attribute `w` on the witness and used as the client token.
        witness: Item that this transaction writes with `w = token` and that only its author's successors overwrite. A
            read of it after a lost answer tells whether the transaction took effect. None when nothing is put: then a
            refusal after a lost answer says nothing, and the author has to look for itself.
    """

    name: str
    actions: tuple[Action, ...]
    token: str
    witness: Key | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Unconditional puts and deletes, in any number and no order: each is to a key that contains its version,
    so late and repeated ones are identical or inert (DESIGN 2).
    """

    name: str
    actions: tuple[Put | Delete, ...]


@dataclass(frozen=True, slots=True)
class RangeRead:
    """A strongly consistent, ascending read of `low <= sk <= high` under one partition key.

    Attributes:
        limit: Most items wanted; the answer may hold fewer although more exist (1 MB pages).
        after: Sort key after which to go on (the last one of the page before).
        newest_first: Descending instead.
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
    """Answer to a `RangeRead`: items in key order, and the key to go on `after`, or None at the end."""

    items: tuple[Item, ...]
    next_after: str | None


# -- what a sent transaction can come back as (one attempt, not yet settled) --------------------------------------


class RefusalCode(NamedTuple):
    """Why one action of a cancelled transaction stood in the way.

    `code` is DynamoDB's: `None`, `ConditionalCheckFailed`, `TransactionConflict`, `ThrottlingError`,
    `ProvisionedThroughputExceeded`, `ItemCollectionSizeLimitExceeded`, `ValidationError`. `item` is the stored item
    when the condition failed (ReturnValuesOnConditionCheckFailure=ALL_OLD), None when there was none.
    """

    code: str
    item: Item | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """The store said yes."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The store said no; one code for each action, in order."""

    reasons: tuple[RefusalCode, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer: it may have been applied, may be applied later, or never."""


@dataclass(frozen=True, slots=True)
class Throttled:
    """The whole request was turned away, nothing was applied."""


RawOutcome: TypeAlias = Applied | Cancelled | Lost | Throttled
