"""The cache of a shard's jobs, runs, timers, inbox and outbox; everything in it derives from rows.

One function adds a row, both at recovery and after a commit, so the two can never differ. It holds all open jobs and
runs: they are few compared with schedules and messages, and their deadlines need no further rows.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Iterable

from tidegate_core.rows import keys
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.run import OutboxRow, Run
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.events.deferred_inbox import DeferredRows, LowWatermarks
from tidegate_core.shard.job_order import Place, queue_position
from tidegate_core.shard.load_sampling import Loads
from tidegate_core.shard.retry_budget import RetryBudget
from tidegate_core.writes.limit_permits import key_text

PENDING_CONSTRAINT = "pending_constraint"


class ShardCache:
    """Jobs, runs, timers, inbox and outbox of one shard.

    Attributes:
        shards: Number of shards of the cluster.
        inbox: Inbox rows in processing.
        inbox_gone: Inbox rows that were deleted since the last read of the inbox began.
        left_rows: Rows in `inbox` that are deferred during a scope suspension.
        settled: Low watermarks, and schedules whose events wait for one in `inbox`.
        horizon: Latest instant of cached timer rows; later ones are read when they come near.
        outages: Outages in PROGRESS.
        retries: Launches and retries that the owner has seen; a successor begins with those of open runs.
        loads: Load samples for waiting jobs, the only part without rows; a successor samples again.
    """

    def __init__(self, shard: int, shards: int = 1) -> None:
        self.shard = shard
        self.shards = shards
        self.jobs: dict[str, Job] = {}
        self.runs: dict[str, Run] = {}
        self.inbox: dict[Key, InboxRow] = {}
        self.inbox_gone: set[Key] = set()
        self.left_rows = DeferredRows()
        self.settled = LowWatermarks()
        self.outbox: dict[Key, OutboxRow] = {}
        self.horizon = 0
        self.outages: tuple[Outage, ...] = ()
        self.loads = Loads()
        self.retries = RetryBudget()
        self._set_aside: set[str] = set()
        self._holds: dict[str, int] = {}
        self._hold_order: list[tuple[int, str]] = []
        self._dues: dict[str, int] = {}
        self._held_by: dict[str, set[str]] = {}
        self._shared_limits: dict[str, dict[Key, None]] = {}
        self._waiting: dict[str, list[Place]] = {}
        self._without_permit: dict[str, dict[str, None]] = {}
        self._timers: dict[Key, TimerRow] = {}
        self._left: dict[Key, TimerRow] = {}
        self._due: list[tuple[int, str]] = []
        self._taken: set[Key] = set()

    def outages_are(self, known: tuple[Outage, ...]) -> None:
        self.outages = known

    # -- rows in and out ----------------------------------------------------------------------------------------------

    def apply_row(self, key: Key, item: Item | None) -> None:
        """Adds a row as it is now; None when it was deleted. Rows of other kinds are ignored."""
        if key.table != "main":
            return
        prefix, name = keys.split_prefix(key)
        if prefix == keys.JOB_PREFIX:
            self._learn_job(name, None if item is None else from_item(Job, item))
        elif prefix == keys.RUN_PREFIX:
            self._learn_run(name, None if item is None else from_item(Run, item))
        elif prefix == keys.TIMER_PREFIX:
            self._learn_timer(key, None if item is None else from_item(TimerRow, item))
        elif prefix == keys.INBOX_PREFIX and item is None:
            self.inbox_row_gone(key)
        elif prefix == keys.OUTBOX_PREFIX:
            if item is None:
                self.outbox.pop(key, None)
            else:
                self.outbox[key] = from_item(OutboxRow, item)

    def _learn_job(self, job_id: str, job: Job | None) -> None:
        before = self.jobs.pop(job_id, None)
        self._set_aside.discard(job_id)
        if before is not None and before.state == PENDING_CONSTRAINT:
            waiting = self._waiting.get(before.ref, [])
            waiting.remove(queue_position(before))
            if not waiting:
                self._waiting.pop(before.ref, None)
        if job is None:
            return
        self.jobs[job_id] = job
        if job.state == PENDING_CONSTRAINT:
            insort(self._waiting.setdefault(job.ref, []), queue_position(job))

    def _learn_run(self, run_id: str, run: Run | None) -> None:
        if run is None:
            ended = self.runs.pop(run_id, None)
            if ended is not None:
                self._without_permit.get(ended.ref, {}).pop(run_id, None)
            return
        if key_text(keys.own_limit(self.shard, run.namespace, run.name)) not in run.limits:
            self._without_permit.setdefault(run.ref, {})[run_id] = None
        known = self.runs.get(run_id)
        if known is None:
            self.retries.launched(run.namespace, run.admitted_at)
        if run.failure is not None and (known is None or known.submissions_before != run.submissions_before):
            # A predecessor's retry counts as well: a change of owner must not start a storm of retries.
            self.retries.retried(run.namespace, run.priority, run.not_before)
        self.runs[run_id] = run

    def _learn_timer(self, key: Key, row: TimerRow | None) -> None:
        if row is None:
            self._timers.pop(key, None)
            self._left.pop(key, None)
            self._taken.discard(key)
        elif row.kind == keys.RESUME_TIMER and key in self._taken:
            return  # Its resume may be deferred for hours, and each read of the rows would start another one.
        elif key not in self._timers and key not in self._left and row.at <= self.horizon:
            self._timers[key] = row
            heapq.heappush(self._due, (row.at, key.sk))

    def leave(self, row: TimerRow) -> None:
        """Leaves a due row in place until the scope suspensions change."""
        self._left[row.key(self.shard)] = row

    def requeue_deferred(self) -> None:
        """Makes the rows that `leave` left due again: the scope suspensions have changed."""
        left, self._left = self._left, {}
        for key, row in left.items():
            self._learn_timer(key, row)

    def take_again(self, row: TimerRow) -> None:
        """Requeues a due row whose decision came too early."""
        self._learn_timer(row.key(self.shard), row)

    def inbox_row_gone(self, key: Key) -> None:
        """Notes that the row is deleted. A concurrent read may still return it, and it must not be processed again."""
        self.inbox.pop(key, None)
        self.left_rows.forget(key)
        self.inbox_gone.add(key)

    def leave_in_inbox(self, key: Key, appended: int) -> None:
        """Defers the row (`DeferredRows.leave`), unless the same transaction has removed it."""
        if key in self.inbox:
            self.left_rows.leave(key, appended)

    def set_aside(self, job_id: str) -> None:
        """Excludes a job that cannot be decided now, so that the jobs after it continue."""
        self._set_aside.add(job_id)

    def take_back(self, job_id: str) -> None:
        self._set_aside.discard(job_id)

    def hold(self, ref: str, until: int, limits: Iterable[str] = (), *, due: int | None = None) -> None:
        """Schedules the next check of the schedule's waiting jobs: at an instant, or when a permit of an own limit is
        returned.

        Of several instants the earliest counts: its check sets the next one.

        Args:
            ref: Schedule.
            until: Time of the check.
            limits: Own limits of the schedule that its jobs wait for.
            due: Earliest time at which a blocker can end, when checks before that only verify rows; by default
                `until`.
        """
        self._dues[ref] = min(until if due is None else due, self._dues.get(ref, until if due is None else due))
        if until < self._holds.get(ref, until + 1):
            self._holds[ref] = until
            heapq.heappush(self._hold_order, (until, ref))
        for limit in limits:
            self._held_by.setdefault(limit, set()).add(ref)

    # -- questions ----------------------------------------------------------------------------------------------------

    def waiting(self, ref: str) -> list[str]:
        """Returns the jobs of a schedule that wait for their constraints, in the order of `queue_position`."""
        return [order[-1] for order in self._waiting.get(ref, ()) if order[-1] not in self._set_aside]

    def has_waiting(self, ref: str) -> bool:
        return ref in self._waiting

    def waiting_refs(self) -> list[str]:
        return sorted(self._waiting)

    def jobs_of(self, ref: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.ref == ref]

    def runs_of(self, ref: str) -> list[Run]:
        return [run for run in self.runs.values() if run.ref == ref]

    def without_permit(self, ref: str) -> tuple[str, ...]:
        """Returns the open runs of a schedule without a permit of the schedule's limit, oldest first: no limit applied at their
        admission.

        They still count for a limit that a later update sets.
        """
        return tuple(sorted(self._without_permit.get(ref, ()), key=lambda run_id: self.runs[run_id].admitted_at))

    def take_due(self, now: int) -> list[TimerRow]:
        """Takes the due timer rows out of memory; their handler deletes or replaces each row."""
        due: list[TimerRow] = []
        while self._due and self._due[0][0] <= now:
            _, sk = heapq.heappop(self._due)
            row = self._timers.pop(Key(keys.shard_pk(self.shard), sk), None)
            if row is not None:
                due.append(row)
                if row.kind in {keys.NOMINAL_TIMER, keys.RESUME_TIMER}:
                    self._taken.add(row.key(self.shard))
        return due

    def is_left_to_remove(self, key: Key) -> bool:
        """Returns whether a schedule's taken timer row still exists, as far as known: no transaction has removed it."""
        return key in self._taken

    def shared_limits(self, ref: str) -> tuple[Key, ...]:
        """Returns the shared limits that the schedule's last check requested; empty before the first."""
        return tuple(self._shared_limits.get(ref, ()))

    def check_limits(self, ref: str, limits: Iterable[Key]) -> list[Key]:
        """Adds shared limits. Returns the new ones, which must be read before they are judged."""
        known = self._shared_limits.setdefault(ref, {})
        new = [limit for limit in limits if limit not in known]
        known.update(dict.fromkeys(new))
        return new

    def remember_shared_limits(self, ref: str, limits: Iterable[Key]) -> None:
        """Keeps only these limits: a key has a limit for each value, and most values never return."""
        self._shared_limits[ref] = dict.fromkeys(limits)

    def forget_limits_of_keys(self, ref: str, limits: Iterable[Key]) -> None:
        """Drops the limits of an ended job. If no job of the schedule waits, no check would drop them."""
        known = self._shared_limits.get(ref, {})
        for limit in filter(keys.is_of_key, limits):
            known.pop(limit, None)

    def take_held(self, now: int) -> list[str]:
        """Takes the schedules whose waiting jobs are due for a check."""
        due: list[str] = []
        while (until := self._next_hold()) is not None and until <= now:
            _, ref = heapq.heappop(self._hold_order)
            del self._holds[ref]
            self._dues.pop(ref, None)
            due.append(ref)
        return sorted(due)

    def _next_hold(self) -> int | None:
        """Returns the earliest instant, and drops entries that an earlier one of the same schedule replaced."""
        order = self._hold_order
        while order and self._holds.get(order[0][1]) != order[0][0]:
            heapq.heappop(order)
        return order[0][0] if order else None

    def released(self, limit: str) -> list[str]:
        """Takes the schedules that wait for a permit of this limit."""
        return sorted(self._held_by.pop(limit, ()))

    def next_wake(self) -> int | None:
        """Returns the earliest instant at which a row is due or a check is planned."""
        instants = (self._next_timer(), self._next_hold())
        return min((each for each in instants if each is not None), default=None)

    def next_due(self) -> int | None:
        """Returns the earliest instant at which a row is due or a blocker can end; it scans all waiting schedules."""
        timer = self._next_timer()
        return min([*([] if timer is None else [timer]), *self._dues.values()], default=None)

    def _next_timer(self) -> int | None:
        while self._due and Key(keys.shard_pk(self.shard), self._due[0][1]) not in self._timers:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None
