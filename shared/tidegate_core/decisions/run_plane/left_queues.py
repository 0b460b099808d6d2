"""What a mark says of a limit's queue, to a job that would end because others wait: whether they do, and for its slots (DESIGN 6).

A home looks at the limits that somebody tells it of, and finds by itself those in whose queues somebody waits. Of one that was left
while the home had no owner, or before it heard that somebody had joined, it hears when the next job joins. A job that aborts joins
nothing. So before it ends because others wait, it looks whether they do.

Those that are there may stand aside for hours, because they wait for another limit as well (`home_limits.py`), and slots may be
free beyond those that the others are about to have. Blocked jobs do not block others (SEMANTICS 7.2): a job whose turn it would be
if it waited does so, until its home offers it the slot, and ends as soon as it is not its turn any more. Nothing but the rows says
which of the two it is, so whoever looks next, a successor as well, decides the same.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate_core.decisions.run_plane.home_limits import in_line, in_turn
from tidegate_core.records.codec import from_item
from tidegate_core.records.limits import SharedLimit, Waiter
from tidegate_core.store import keys
from tidegate_core.store.values import Key, RangeRead
from tidegate_core.transactions.limits import close_queue, home_of
from tidegate_core.transactions.unit_of_work import UnitOfWork

ROWS_MAX = 100
"""Of a queue that are looked at, a read of some 25 KB. Where they do not tell the job asks the home, which goes through all."""


class LeftQueue(Exception):
    """Nobody waits for a limit that is marked: close its queue, and decide again."""

    def __init__(self, limit: Key, mark: str) -> None:
        super().__init__(limit, mark)
        self.limit = limit
        self.mark = mark


def has_its_turn(unit: UnitOfWork, limit: Key, mine: Waiter, shards: int, now: int) -> bool:
    """Whether the limit's home would offer the job a slot: one read of the queue, wherever it lies, for a job that would end
    although the limit has room.

    What it finds is a little younger than the limit's item, and gives nothing away: who is taken for one whose turn it is waits
    for the home's word.

    Args:
        unit: Has read the limit's item.
        limit: It has room, and a mark.
        mine: The job's row as it is in the queue, or would be, if the job does not stand aside.
        shards: Of the cluster.
        now: The present.

    Raises:
        LeftQueue: Nobody is there.
        NotAtHand: It was not read yet; it is read after the limit's item, as its home does.
    """
    state = SharedLimit.of(unit.item(limit))
    home = home_of(limit, shards)
    found = unit.elsewhere(RangeRead(keys.shard_pk(home), *keys.waiters_of(limit), limit=ROWS_MAX))
    if state.queued is not None and not found:
        raise LeftQueue(limit, state.queued)
    others = [row for row in (from_item(Waiter, item) for item in found) if row.job_id != mine.job_id]
    line = in_line(sorted([*others, mine], key=lambda row: row.key(home).sk))
    # Words of others lapse at the home's next look: of jobs that are gone, and of those that stand aside behind the first of these.
    words = state.offered & {row.job_id for row in line}
    return mine.job_id in in_turn(replace(state.at(now), offered=words), line)


def close_left(unit: UnitOfWork, found: LeftQueue) -> None:
    """Closes the queue, instead of all that the decision has written; once that is in the store it decides again.

    Any shard's owner may: each who joins leaves a mark of its own, so under the one that was seen nobody has.
    """
    unit.drop()
    unit.apply(close_queue(found.limit, found.mark))
    unit.go_on()
