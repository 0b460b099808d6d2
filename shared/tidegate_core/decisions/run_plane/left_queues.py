"""A queue that all have left while its home did not look: its mark says that others wait, and nobody does (DESIGN 6).

A home looks at the limits that somebody tells it of, and finds by itself those in whose queues somebody waits. Of one that was left
while the home had no owner, or before it heard that somebody had joined, it hears when the next job joins. A job that aborts joins
nothing. So before it ends because others wait, it looks whether they do.
"""

from __future__ import annotations

from tidegate_core.records.limits import SharedLimit
from tidegate_core.store import keys
from tidegate_core.store.values import Key, RangeRead
from tidegate_core.transactions.limits import close_queue, home_of
from tidegate_core.transactions.unit_of_work import UnitOfWork


class LeftQueue(Exception):
    """Nobody waits for a limit that is marked: close its queue, and decide again."""

    def __init__(self, limit: Key, mark: str) -> None:
        super().__init__(limit, mark)
        self.limit = limit
        self.mark = mark


def see_that_others_wait(unit: UnitOfWork, limit: Key, shards: int) -> None:
    """Looks into the limit's queue, wherever its home is: one read, for a job that would end although the limit has room.

    Raises:
        LeftQueue: Nobody is there.
        NotAtHand: It was not read yet; it is read after the limit's item, as its home does.
    """
    mark = SharedLimit.of(unit.item(limit)).queued
    rows = RangeRead(keys.shard_pk(home_of(limit, shards)), *keys.waiters_of(limit), limit=1)
    if mark is not None and not unit.holds_any(rows):
        raise LeftQueue(limit, mark)


def close_left(unit: UnitOfWork, found: LeftQueue) -> None:
    """Closes the queue, instead of all that the decision has written; once that is in the store it decides again.

    Any shard's owner may: each who joins leaves a mark of its own, so under the one that was seen nobody has.
    """
    unit.drop()
    unit.apply(close_queue(found.limit, found.mark))
    unit.go_on()
