"""What a mark says of a limit's queue, to a job that would end because others wait: whether they do, and for its slots (DESIGN 6).

A home looks at the limits that somebody tells it of, and finds by itself those in whose queues somebody waits. Of one that was left
while the home had no owner, or before it heard that somebody had joined, it hears when the next job joins. A job that aborts joins
nothing. So before it ends because others wait, it looks whether they do.

Those that are there may stand aside for hours, because they wait for another limit as well (`limit_coordinator.py`), and slots may be
free beyond those that the others are about to have. Blocked jobs do not block others (SEMANTICS 7.2): a job whose turn it would be
if it waited does so, until its home offers it the slot, and ends at the first look at which it is not its turn any more. Nothing
but the rows says which of the two it is, so whoever looks next, a successor as well, decides the same.

That a home is silent says nothing: it may have no owner. So a job waits only where the rows say that it has its turn, and of a long
queue more are read until they say one or the other. Who waited where they do not tell would see the same rows at each look, and do so
for as long as its time-out lets it. Behind more than are read at all it ends, as `abort` says of a job whose turn nobody can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidegate_core.admission.limit_coordinator import grantable_entries, in_line
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.shared_limit import QueueEntry, SharedLimit
from tidegate_core.rows.store_operations import Key, RangeRead
from tidegate_core.writes.limit_permits import close_queue, owner_shard_of
from tidegate_core.writes.unit_of_work import UnitOfWork

ROWS_MAX = 100
"""Of a queue that are looked at first, a read of some 25 KB: as good as always they tell."""
LONG_ROWS_MAX = 1_000
"""Of a queue that are looked at where these do not tell: some 250 KB; its home reads all of it each second. A schedule has about eight
jobs in a queue at most, so more than a hundred schedules have to wait for one limit before these do not tell either."""


class AbandonedQueue(Exception):
    """Nobody waits for a limit that is marked: close its queue, and decide again."""

    def __init__(self, limit: Key, mark: str) -> None:
        super().__init__(limit, mark)
        self.limit = limit
        self.mark = mark


def would_be_granted(unit: UnitOfWork, limit: Key, mine: QueueEntry, shards: int, now: int) -> bool:
    """Whether the limit's home would offer the job a slot: one read of the queue, wherever it lies, for a job that would end
    although the limit has room; two of a long one whose first rows do not tell.

    What it finds is a little younger than the limit's item, and gives nothing away: who is taken for one whose turn it is waits
    for the home's word.

    Args:
        unit: Has read the limit's item.
        limit: It has room, and a mark.
        mine: The job's row as it is in the queue, or would be, if the job does not stand aside.
        shards: Of the cluster.
        now: The present.

    Raises:
        AbandonedQueue: Nobody is there.
        NotAtHand: It was not read yet; it is read after the limit's item, as its home does.
    """
    state = SharedLimit.of(unit.item(limit)).at(now)
    home = owner_shard_of(limit, shards)
    for most in (ROWS_MAX, LONG_ROWS_MAX):
        found = unit.elsewhere(RangeRead(keys.shard_pk(home), *keys.queue_entries_of(limit), limit=most))
        if state.queued is not None and not found:
            raise AbandonedQueue(limit, state.queued)
        rows = [from_item(QueueEntry, item) for item in found]
        if not _leaves_a_slot(state, rows, mine, home):
            return False  # Whatever lies behind these: it would only take more.
        if len(rows) < most or _is_all_that_counts(state, rows, mine, home):
            return True
    return False


def _leaves_a_slot(state: SharedLimit, rows: Sequence[QueueEntry], mine: QueueEntry, home: int) -> bool:
    """Whether these rows of the queue leave the job a slot."""
    others = [row for row in rows if row.job_id != mine.job_id]
    line = in_line(state, sorted([*others, mine], key=lambda row: row.key(home).sk))
    # Words of others lapse at the home's next look: of jobs that are gone, and of those that stand aside behind the first of these.
    words = state.offered & {row.job_id for row in line}
    return mine.job_id in grantable_entries(replace(state, offered=words), line)


def _is_all_that_counts(state: SharedLimit, rows: Sequence[QueueEntry], mine: QueueEntry, home: int) -> bool:
    """Whether the rows behind these, the first of a queue, take nothing from the job: they come behind it, and none has a word."""
    comes_before = mine.key(home).sk <= rows[-1].key(home).sk
    return comes_before and state.offered <= {row.job_id for row in rows}


def close_abandoned(unit: UnitOfWork, found: AbandonedQueue) -> None:
    """Closes the queue, instead of all that the decision has written; once that is in the store it decides again.

    Any shard's owner may: each who joins leaves a mark of its own, so under the one that was seen nobody has.
    """
    unit.drop()
    unit.apply(close_queue(found.limit, found.mark))
    unit.go_on()
