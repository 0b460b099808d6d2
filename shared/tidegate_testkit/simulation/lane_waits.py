"""When faults kept the lane of a shard waiting for one transaction: nothing else of the shard is decided meanwhile (DESIGN 4)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tidegate_core.store.values import Transaction

BEFORE_LANES: Final = "acquire"
"""It moves a lease before there is a lane."""
OUTAGE: Final = "outage"
"""It is written within the lane, before all that depends on it, and does not check the lease."""


class LaneWait(NamedTuple):
    """From a send that came to nothing to the next send of the same transaction; both true times."""

    token: str
    begin: int
    end: int


class LaneWaits:
    """Told of each send. What its author does not send again is no wait: it has ended, or knows enough.

    Attributes:
        spans: By partition key of the shard, in the order of their ends.
    """

    def __init__(self) -> None:
        self.spans: defaultdict[str, list[LaneWait]] = defaultdict(list)
        self._in_vain: dict[str, int] = {}

    def sent(self, transaction: Transaction, now: int) -> None:
        """A send, which comes to nothing unless `arrives` follows."""
        pk = lane_of(transaction)
        if pk is None:
            return
        before = self._in_vain.get(transaction.token)
        if before is not None:
            self.spans[pk].append(LaneWait(transaction.token, before, now))
        self._in_vain[transaction.token] = now

    def arrives(self, transaction: Transaction) -> None:
        """The store takes the send, and its author will know."""
        self._in_vain.pop(transaction.token, None)


def lane_of(transaction: Transaction) -> str | None:
    """Returns the partition key of the shard whose lane waits until this is settled: only lanes check a lease. None: no lane does.

    A lane that raises the version of an index shard waits for that as well, and the transaction does not name its shard: it is left out,
    which errs on the strict side.
    """
    if transaction.name == BEFORE_LANES:
        return None
    if transaction.name == OUTAGE:
        return transaction.actions[0].key.pk
    return next((action.key.pk for action in transaction.actions if action.key.sk == "LEASE"), None)
