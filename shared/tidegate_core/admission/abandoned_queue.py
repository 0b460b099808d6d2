"""Decides whether an `abort` job may end because others wait for a limit that has room.

`admit.py` calls this before it ends such a job. It reads the queue and writes nothing, except to close an empty queue.

A queue mark on the limit says that jobs wait. The mark can be stale: a queue can be abandoned while the owner shard has
no owner, or before the limit coordinator learned of it. A job that aborts never joins the queue, so the coordinator
would not learn of it from that job. So the job reads the queue before it ends.

The jobs in the queue may yield for hours, because they also wait for another limit (`limit_coordinator.py`). Free
permits may also remain after the other jobs have theirs. Blocked jobs do not block others. So a job that would be
granted a permit waits until the coordinator offers one. It ends at the first decision at which it would not be granted
any more. The decision depends on rows only, so a successor decides the same.

A silent coordinator proves nothing: its shard may have no owner. So a job waits only if the rows show that it would be
granted.
A long queue is read further until the rows decide. If the job waited without that proof, each decision would see the
same rows
until the pending time-out. If even the longest read does not decide, the job ends, as `abort` says.
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
"""Queue entries of the first read, about 25 KB. They nearly always decide."""
LONG_ROWS_MAX = 1_000
"""Queue entries of the second read, about 250 KB, when the first read does not decide. The limit coordinator reads the
whole queue each second. A schedule has about eight jobs in a queue at most. So more than a hundred schedules must wait
for one limit before these entries do not decide either.
"""


class AbandonedQueue(Exception):
    """A limit has a queue mark, but no job waits. Close the queue and decide again."""

    def __init__(self, limit: Key, mark: str) -> None:
        super().__init__(limit, mark)
        self.limit = limit
        self.mark = mark


def would_be_granted(unit: UnitOfWork, limit: Key, mine: QueueEntry, shards: int, now: int) -> bool:
    """Whether the limit coordinator would offer the job a permit.

    Called for a job that would end although the limit has room. It reads the queue once, on any shard, and twice if the
    queue is long and its first rows do not decide.

    The queue is read a little later than the limit's item. That is safe: the answer grants nothing, the job only waits
    for an offer.

    Args:
        unit: Unit of work that has read the limit's item.
        limit: Key of a limit that has room and a queue mark.
        mine: The job's queue entry, stored or hypothetical; as if the job does not yield.
        shards: Number of shards of the cluster.
        now: The present.

    Raises:
        AbandonedQueue: No job is in the queue.
        NotAtHand: The queue was not read. The caller reads it after the limit's item, as the coordinator does.
    """
    state = SharedLimit.of(unit.item(limit)).at(now)
    home = owner_shard_of(limit, shards)
    for most in (ROWS_MAX, LONG_ROWS_MAX):
        found = unit.elsewhere(RangeRead(keys.shard_pk(home), *keys.queue_entries_of(limit), limit=most))
        if state.queued is not None and not found:
            raise AbandonedQueue(limit, state.queued)
        rows = [from_item(QueueEntry, item) for item in found]
        if not _leaves_a_slot(state, rows, mine, home):
            return False  # Further rows would only take more permits.
        if len(rows) < most or _is_all_that_counts(state, rows, mine, home):
            return True
    return False


def _leaves_a_slot(state: SharedLimit, rows: Sequence[QueueEntry], mine: QueueEntry, home: int) -> bool:
    """Whether these queue entries leave a permit for the job."""
    others = [row for row in rows if row.job_id != mine.job_id]
    line = in_line(state, sorted([*others, mine], key=lambda row: row.key(home).sk))
    # The coordinator's next pass ends other offers: those to jobs that are gone, and those to jobs that yield after the
    # first that yields.
    words = state.offered & {row.job_id for row in line}
    return mine.job_id in grantable_entries(replace(state, offered=words), line)


def _is_all_that_counts(state: SharedLimit, rows: Sequence[QueueEntry], mine: QueueEntry, home: int) -> bool:
    """Whether the unread rest of the queue takes no permit from the job: it comes later in the order and has no offer."""
    comes_before = mine.key(home).sk <= rows[-1].key(home).sk
    return comes_before and state.offered <= {row.job_id for row in rows}


def close_abandoned(unit: UnitOfWork, found: AbandonedQueue) -> None:
    """Closes the queue in place of all that the decision has written. The decision runs again after the commit.

    Any shard's owner may close it. Each job that joins writes a unique queue mark, so the condition on the old mark
    excludes a race.
    """
    unit.drop()
    unit.apply(close_queue(found.limit, found.mark))
    unit.go_on()
