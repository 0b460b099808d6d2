"""The store: what an actor reads and writes, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_core.rows.store_operations import Batch, Item, Key, RangeRead, Transaction


@dataclass(frozen=True, slots=True)
class Read:
    """Strongly consistent read of items. Answer: `Items`, `Unavailable` after the port's patience, or `Invalid`."""

    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class ReadRange:
    """Answer: `Page`, `Unavailable` or `Invalid`."""

    range: RangeRead


@dataclass(frozen=True, slots=True)
class Commit:
    """One conditional transaction, settled (DESIGN 2, `writes/settlement.py`). Answer: `Committed`, `Refused`,
    `Unavailable` or `Invalid`.

    `Unavailable` means that nobody knows: the author must send it again, or read, before it goes on.
    """

    transaction: Transaction


@dataclass(frozen=True, slots=True)
class Write:
    """An unconditional batch, repeated until all of it is acknowledged. Answer: `Written`, `Unavailable` or `Invalid`; with
    either of these some of it may be there.

    Attributes:
        guarded: It is sent, and sent again, only while membership is proven, else `Unavailable`: who stood still, and has been
            put out meanwhile, must not write over what others have written since.
    """

    batch: Batch
    guarded: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """What was found; keys of absent items are left out."""

    found: Mapping[Key, Item]


@dataclass(frozen=True, slots=True)
class Committed:
    """All of it is in the store."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was applied.

    Attributes:
        failed: Key and stored item (None = absent) of each action whose condition was false; empty when it was only
            a conflict that outlived the port's retries.
        doubtful: An earlier send got no answer: until what it consumes has changed it may still be applied, late.
    """

    failed: tuple[tuple[Key, Item | None], ...]
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Invalid:
    """The store will never take this as it is (an item, a key or the whole too large, an expression that does not fit what
    is stored): no repeat helps. Of a transaction nothing was applied; of a batch, nothing of the calls that it refused.
    """

    message: str


@dataclass(frozen=True, slots=True)
class Written:
    """All of it is acknowledged."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The brick did not answer within the port's patience; nothing is known."""

    what: str
