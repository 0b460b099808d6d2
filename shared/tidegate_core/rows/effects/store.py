"""Effects on the store: reads and writes of an actor, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_core.rows.store_operations import Batch, Item, Key, RangeRead, Transaction


@dataclass(frozen=True, slots=True)
class Read:
    """A strongly consistent read of items. Result: `Items`, `Invalid`, or `Unavailable` once the port's retries are used
    up.
    """

    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class ReadRange:
    """A read of one page of a range. Result: `Page`, `Unavailable` or `Invalid`."""

    range: RangeRead


@dataclass(frozen=True, slots=True)
class Commit:
    """One conditional transaction. `writes/settlement.py` finds out what a lost answer meant. Result: `Committed`,
    `Refused`, `Unavailable` or `Invalid`.

    `Unavailable` means that the outcome is unknown: the author must send it again, or read, before it continues.
    """

    transaction: Transaction


@dataclass(frozen=True, slots=True)
class Write:
    """An unconditional batch, repeated until the store acknowledges all of it. Result: `Written`, `Unavailable` or
    `Invalid`.

    After the last two results, a part of the batch may be in the store.

    Attributes:
        guarded: True when the driver may send and repeat it only while membership is proven, and returns
            `Unavailable` otherwise. A node that froze and lost its membership must not overwrite newer writes of
            others.
    """

    batch: Batch
    guarded: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """Items that the read found; absent keys are missing here."""

    found: Mapping[Key, Item]


@dataclass(frozen=True, slots=True)
class Committed:
    """The whole transaction is in the store."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The store applied nothing.

    Attributes:
        failed: Key and stored item (None = absent) of each action whose condition was false. Empty after a mere
            conflict that outlasted the port's retries.
        doubtful: True when an earlier send got no answer. That send may still be applied late, until the items that
            it consumes change.
    """

    failed: tuple[tuple[Key, Item | None], ...]
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Invalid:
    """The store can never accept the request: something is too large, or an expression does not fit the stored item.

    No repeat helps. Nothing of a transaction was applied; nothing of the refused calls of a batch was applied.
    """

    message: str


@dataclass(frozen=True, slots=True)
class Written:
    """The store acknowledged the whole batch."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The port's retries are used up and the outcome is unknown."""

    what: str
