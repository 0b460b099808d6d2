"""The store port: four calls, two implementations (DynamoDB and in memory), one conformance suite."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from tidegate_core.rows.store_operations import Delete, Item, Key, Page, Put, RangeRead, RawOutcome, Transaction


class StoreUnavailable(Exception):
    """A read or a batch got no answer in time, or was throttled. Its outcome is unknown; retry with back-off."""


class PartlyRead(StoreUnavailable):
    """Some or all keys of a read got no answer. A caller that needs one of those retries; the others have their items.

    Attributes:
        found: Existing items of the answered keys.
        unread: Keys without an answer.
    """

    def __init__(self, problem: str, found: Mapping[Key, Item], unread: Collection[Key]) -> None:
        super().__init__(problem)
        self.found = found
        self.unread = frozenset(unread)


class StoreRequestInvalid(Exception):
    """The request can never work: an expression that does not parse, an update of a missing attribute, a limit.

    It is a bug of the caller, not an outcome: nothing was applied, and no retry helps.
    """


class NotSent(Exception):
    """The caller has lost the right to write; no part of this request was sent."""


def always() -> bool:
    """Permits a write that does not depend on the group membership."""
    return True


class Store(Protocol):
    """Blocking store; called from a thread pool. One attempt per call: the caller settles and retries."""

    def transact(self, transaction: Transaction) -> RawOutcome:
        """Sends the transaction once. Never raises for an outcome that `RawOutcome` can express."""
        ...

    def write(self, actions: Sequence[Put | Delete]) -> Sequence[Put | Delete]:
        """Sends unconditional writes (chunks of 25) once and returns those that the store did not process.

        Raises:
            StoreUnavailable: Some writes may have been applied.
        """
        ...

    def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        """Returns the existing items of the keys, with strongly consistent reads (chunks of 100).

        Raises:
            StoreUnavailable: Some keys got no answer; `PartlyRead` holds them.
        """
        ...

    def query(self, wanted: RangeRead) -> Page:
        """Returns one strongly consistent page. Raises StoreUnavailable."""
        ...


class AsyncStore(Protocol):
    """The same four calls for a loop. A cancelled call may have been carried out, like one without an answer."""

    async def transact(self, transaction: Transaction) -> RawOutcome:
        """See `Store.transact`."""
        ...

    async def write(
        self, actions: Sequence[Put | Delete], may_leave: Callable[[], bool] = always
    ) -> Sequence[Put | Delete]:
        """See `Store.write`.

        Args:
            actions: See `Store.write`.
            may_leave: Checked after all waits of a request, in the same step that sends it.

        Raises:
            NotSent: `may_leave` returned False; earlier requests of this call may have been sent.
        """
        ...

    async def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        """See `Store.get`."""
        ...

    async def query(self, wanted: RangeRead) -> Page:
        """See `Store.query`."""
        ...
