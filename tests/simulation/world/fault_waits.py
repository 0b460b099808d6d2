"""When faults kept somebody waiting for the fate of one transaction: what stands behind it in his order has no time meanwhile."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tidegate_core.rows.store_operations import Transaction

BEFORE_LANES: Final = "acquire"
"""It moves a lease before there is a shard writer."""
OUTAGE: Final = "outage"
"""It is written within the shard writer, before all that depends on it, and does not check the lease."""
DEALS_WITH_RECORDS: Final = frozenset({"cursor", "inboxed"})
"""Behind them whoever owns a message's shard may rely on its create (DESIGN 5). The first item of each is of the topic partition's
position, or of the shard's inbox.
"""


class FaultWait(NamedTuple):
    """From a send that came to nothing to the next send of the same transaction; both true times."""

    token: str
    begin: int
    end: int


class FaultWaits:
    """Told of each send. What its author does not send again is no wait: it has ended, or knows enough.

    Attributes:
        lanes: Of the shards' lanes, by partition key of the shard, in the order of their ends (DESIGN 4).
        records: Of those who deal with records, by partition key of the topic partition's position or of the shard that has an inbox,
            in the order of their ends.
    """

    def __init__(self) -> None:
        self.lanes: defaultdict[str, list[FaultWait]] = defaultdict(list)
        self.records: defaultdict[str, list[FaultWait]] = defaultdict(list)
        self._in_vain: dict[str, int] = {}

    def sent(self, transaction: Transaction, now: int) -> None:
        """A send, which comes to nothing unless `arrives` follows."""
        before = self._in_vain.get(transaction.token)
        self._in_vain[transaction.token] = now
        if before is None:
            return
        wait = FaultWait(transaction.token, before, now)
        writer = lane_of(transaction)
        if writer is not None:
            self.lanes[writer].append(wait)
        if transaction.name in DEALS_WITH_RECORDS:
            self.records[transaction.actions[0].key.pk].append(wait)

    def arrives(self, transaction: Transaction) -> None:
        """The store takes the send, and its author will know."""
        self._in_vain.pop(transaction.token, None)


def lane_of(transaction: Transaction) -> str | None:
    """Returns the partition key of the shard whose lane waits until this is settled: only lanes check a lease. None: no lane does.

    A shard writer that raises the version of an index shard waits for that as well, and the transaction does not name its shard: it is left out,
    which errs on the strict side.
    """
    if transaction.name == BEFORE_LANES:
        return None
    if transaction.name == OUTAGE:
        return transaction.actions[0].key.pk
    return next((action.key.pk for action in transaction.actions if action.key.sk == "LEASE"), None)
