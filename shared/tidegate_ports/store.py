"""The store as the drivers see it: four calls, two implementations (DynamoDB, simulated), one conformance suite."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from tidegate_core.rows.store_operations import Delete, Item, Key, Page, Put, RangeRead, RawOutcome, Transaction


class StoreUnavailable(Exception):
    """A read or a batch got no answer in time, or was throttled away. Retry with back-off; nothing is known."""


class PartlyRead(StoreUnavailable):
    """A read of which some keys stayed without an answer, or all: who needs one of those retries; the others have theirs.

    Attributes:
        found: What is there of the keys that were answered.
        unread: Keys of which nothing is known.
    """

    def __init__(self, problem: str, found: Mapping[Key, Item], unread: Collection[Key]) -> None:
        super().__init__(problem)
        self.found = found
        self.unread = frozenset(unread)


class StoreRequestInvalid(Exception):
    """The request can never work: an expression that does not parse, an update of an attribute that is not there, a limit.

    A bug of its author, not an outcome: nothing was applied and no retry helps.
    """


class NotSent(Exception):
    """Whoever asked may not write any more: nothing of this call has left."""


def always() -> bool:
    """Of what may be sent whoever is a member."""
    return True


class Store(Protocol):
    """Blocking; called from a thread pool. One attempt per call: settling and retrying are the caller's."""

    def transact(self, transaction: Transaction) -> RawOutcome:
        """Sends the transaction once. Never raises for an outcome that `RawOutcome` can say."""
        ...

    def write(self, actions: Sequence[Put | Delete]) -> Sequence[Put | Delete]:
        """Sends unconditional writes (chunks of 25) once and returns those that the store did not process.

        Raises:
            StoreUnavailable: Some may have been applied.
        """
        ...

    def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        """Strongly consistent reads (chunks of 100), absent keys left out.

        Raises:
            StoreUnavailable: Not of all keys; `PartlyRead` says of which.
        """
        ...

    def query(self, wanted: RangeRead) -> Page:
        """One strongly consistent page. Raises StoreUnavailable."""
        ...


class AsyncStore(Protocol):
    """The same four calls, for a loop. A call that is cancelled may have been carried out, as one without an answer."""

    async def transact(self, transaction: Transaction) -> RawOutcome:
        """See `Store.transact`."""
        ...

    async def write(
        self, actions: Sequence[Put | Delete], may_leave: Callable[[], bool] = always
    ) -> Sequence[Put | Delete]:
        """See `Store.write`.

        Args:
            actions: The same.
            may_leave: Asked when all that a request waits for is there, in the very step in which it leaves.

        Raises:
            NotSent: It may not; requests before it may have left.
        """
        ...

    async def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        """See `Store.get`."""
        ...

    async def query(self, wanted: RangeRead) -> Page:
        """See `Store.query`."""
        ...
