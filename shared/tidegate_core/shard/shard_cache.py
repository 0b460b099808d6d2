"""What an owner keeps in memory of its shard's run plane; all of it derives from rows.

The same function takes a row in when it is read at recovery and when a transaction has written it, so the two can never
differ. Open jobs and runs are held whole: they are few against schedules and messages, and their deadlines derive
from them without further rows.
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
        shards: Of the cluster.
        inbox: Rows that are being dealt with.
        inbox_gone: Inbox rows that were deleted since the last read of the inbox began.
        left_rows: Those of `inbox` that nobody deals with while a wide suspend goes on.
        settled: Up to when all is counted, and whose events wait in `inbox` for that.
        horizon: Timer rows later than this instant are not kept; they are read when their time comes near.
        outages: Facts of the shard, as PROGRESS says.
        retries: What of retries its owner has seen; a successor begins with those of runs that are open.
        loads: Samples of loads that jobs wait for; the one thing here that no row holds, and that is asked for anew.
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
        """Takes in a row as it now is; None when it was deleted. Rows of kinds that are not kept are ignored."""
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
            # A predecessor's retry counts as well: a new owner begins no new storm of retries.
            self.retries.retried(run.namespace, run.priority, run.not_before)
        self.runs[run_id] = run

    def _learn_timer(self, key: Key, row: TimerRow | None) -> None:
        if row is None:
            self._timers.pop(key, None)
            self._left.pop(key, None)
            self._taken.discard(key)
        elif row.kind == keys.RESUME_TIMER and key in self._taken:
            return  # Whoever resumes by it may stand aside for hours; each read of the rows would bring another one.
        elif key not in self._timers and key not in self._left and row.at <= self.horizon:
            self._timers[key] = row
            heapq.heappush(self._due, (row.at, key.sk))

    def leave(self, row: TimerRow) -> None:
        """A row that is due stays where it is until the wide controls change: nobody looks at it before."""
        self._left[row.key(self.shard)] = row

    def requeue_deferred(self) -> None:
        """The wide controls have changed: what was left is due."""
        left, self._left = self._left, {}
        for key, row in left.items():
            self._learn_timer(key, row)

    def take_again(self, row: TimerRow) -> None:
        """A row that was due has its turn once more: its decision came too early."""
        self._learn_timer(row.key(self.shard), row)

    def inbox_row_gone(self, key: Key) -> None:
        """The row is deleted; a read that is under way may still bring it, and it must not be dealt with again."""
        self.inbox.pop(key, None)
        self.left_rows.forget(key)
        self.inbox_gone.add(key)

    def leave_in_inbox(self, key: Key, appended: int) -> None:
        """Nobody deals with the row for now (`DeferredRows.leave`), unless the same transaction has removed it."""
        if key in self.inbox:
            self.left_rows.leave(key, appended)

    def set_aside(self, job_id: str) -> None:
        """The job cannot be decided on now: those behind it go on."""
        self._set_aside.add(job_id)

    def take_back(self, job_id: str) -> None:
        self._set_aside.discard(job_id)

    def hold(self, ref: str, until: int, limits: Iterable[str] = (), *, due: int | None = None) -> None:
        """Remembers when, or at the return of which own limit's permit, the schedule's waiting jobs are to be looked at.

        Of several instants the earliest counts: who is looked at then says anew how long it waits.

        Args:
            ref: The schedule.
            until: When they are looked at.
            limits: The schedule's own ones that they wait for.
            due: When something can have changed by itself, where looks before that only look after rows; by default `until`.
        """
        self._dues[ref] = min(until if due is None else due, self._dues.get(ref, until if due is None else due))
        if until < self._holds.get(ref, until + 1):
            self._holds[ref] = until
            heapq.heappush(self._hold_order, (until, ref))
        for limit in limits:
            self._held_by.setdefault(limit, set()).add(ref)

    # -- questions ----------------------------------------------------------------------------------------------------

    def waiting(self, ref: str) -> list[str]:
        """Returns the jobs of a schedule that wait for their constraints, as `queue_position` orders them."""
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
        """Open runs of a schedule that take no permit of its own, the oldest first: no limit held for them when they were admitted.

        They are open all the same for what an update has said since.
        """
        return tuple(sorted(self._without_permit.get(ref, ()), key=lambda run_id: self.runs[run_id].admitted_at))

    def take_due(self, now: int) -> list[TimerRow]:
        """Takes the timer rows that are due out of memory; whoever handles one deletes or replaces the row."""
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
        """Whether a schedule's row that was due is there still, as far as is known: no transaction has removed it since it was taken."""
        return key in self._taken

    def shared_limits(self, ref: str) -> tuple[Key, ...]:
        """Limits outside of this shard that the schedule's last look asked for; empty before the first."""
        return tuple(self._shared_limits.get(ref, ()))

    def check_limits(self, ref: str, limits: Iterable[Key]) -> list[Key]:
        """Adds to them; returns those that were not among them, which have to be read before they are judged."""
        known = self._shared_limits.setdefault(ref, {})
        new = [limit for limit in limits if limit not in known]
        known.update(dict.fromkeys(new))
        return new

    def remember_shared_limits(self, ref: str, limits: Iterable[Key]) -> None:
        """Keeps these only: a key has a limit for each of its values, and most of them never come again."""
        self._shared_limits[ref] = dict.fromkeys(limits)

    def forget_limits_of_keys(self, ref: str, limits: Iterable[Key]) -> None:
        """Their job goes, and waits for them no more: if nothing of the schedule ever waits, there is no look that keeps only some."""
        known = self._shared_limits.get(ref, {})
        for limit in filter(keys.is_of_key, limits):
            known.pop(limit, None)

    def take_held(self, now: int) -> list[str]:
        """Takes the schedules whose waiting jobs are to be looked at now."""
        due: list[str] = []
        while (until := self._next_hold()) is not None and until <= now:
            _, ref = heapq.heappop(self._hold_order)
            del self._holds[ref]
            self._dues.pop(ref, None)
            due.append(ref)
        return sorted(due)

    def _next_hold(self) -> int | None:
        """The earliest instant; those that an earlier one of the same schedule has replaced are dropped here."""
        order = self._hold_order
        while order and self._holds.get(order[0][1]) != order[0][0]:
            heapq.heappop(order)
        return order[0][0] if order else None

    def released(self, limit: str) -> list[str]:
        """Takes the schedules that wait for a permit of this limit."""
        return sorted(self._held_by.pop(limit, ()))

    def next_wake(self) -> int | None:
        """The earliest instant at which something here is due, or is to be looked at."""
        instants = (self._next_timer(), self._next_hold())
        return min((each for each in instants if each is not None), default=None)

    def next_due(self) -> int | None:
        """The earliest instant at which something here is due; asks all schedules that wait."""
        timer = self._next_timer()
        return min([*([] if timer is None else [timer]), *self._dues.values()], default=None)

    def _next_timer(self) -> int | None:
        while self._due and Key(keys.shard_pk(self.shard), self._due[0][1]) not in self._timers:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None
