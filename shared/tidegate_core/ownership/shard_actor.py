"""The actor of one shard: it recovers the shard from its rows, runs its loops, and reacts to each row that the shard writes.

The partition actor creates it at a take-over and passes wake-ups on. It has no I/O of its own: the node answers its effects, and in tests the
simulator does. Memory and next steps both follow from rows: `_written` gets each row of a committed transaction, and recovery reads all open
rows. So the next owner goes on where this one stopped. The parts that it connects write; the actor itself writes nothing.
"""

from __future__ import annotations

from functools import partial

from tidegate_core.admission.limit_coordinator import LimitCoordinator
from tidegate_core.admission.limit_upkeep import RemoveIdle
from tidegate_core.commands.shard_suspension import ShardSuspension
from tidegate_core.commands.timed_resume import resume_when_due
from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.decision import Work
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.firing.fire import FireSchedule
from tidegate_core.messages.message_scheduler import CLOCKS_APART_MS, MessageScheduler
from tidegate_core.messages.recurring.recurring_change import PlaceRecord
from tidegate_core.ownership.admission_scheduler import AdmissionScheduler
from tidegate_core.ownership.evidence_deadlines import Deadlines
from tidegate_core.ownership.inbox import Inbox
from tidegate_core.ownership.quarantine import Quarantine
from tidegate_core.ownership.repair.repair_sweep import RepairSweep, TimerSweep
from tidegate_core.rows import keys
from tidegate_core.rows.effects import ReadRange, WakeUp
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.scope_suspension import ScopeSuspensions
from tidegate_core.rows.store_operations import Item, Key, Page
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.runs.attempts import Attempts
from tidegate_core.runs.outbox_relay import OutboxRelay
from tidegate_core.shard.events.evidence_log import clean_up
from tidegate_core.shard.events.subscription_index import SubscriptionIndex
from tidegate_core.shard.outages.outage_recorder import OutageRecorder, WriteDownOutage
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.fencing import Carried
from tidegate_core.writes.limit_permits import homes_of

TIMER_WINDOW_MS = 5 * 60_000
"""How far ahead timer rows are kept in memory. After half of it they are read again, from the first row."""
SWEEP_MS = 10_000
"""Interval between sweeps: a lost wake-up costs at most this latency."""
WRITER_CHECK_MS = 5
WRITER_PATIENCE_MS = 1_000
"""How long a decision outside the shard writer waits for the shard writer to become idle. Their transactions would conflict; a drain has 2.5 s in total."""


class ShardActor:
    """One fenced shard, without the delivery of its messages (`MessageScheduler`).

    Args:
        host: Shared parts of the partition actor.
        index: Subscription index of the node.
        plane: Message scheduler of the shard; it takes messages from the inbox.
        shard: Number of the shard, 0 to S-1.
        epoch: Epoch of this ownership; every write checks it.
        carried: Versions of the scope suspensions in the lease.
        outages: Outage recorder of the shard.
    """

    def __init__(
        self,
        host: ActorContext,
        index: SubscriptionIndex,
        plane: MessageScheduler,
        shard: int,
        epoch: int,
        carried: Carried,
        outages: OutageRecorder,
    ) -> None:
        self.shard = shard
        self.plane = plane
        self.memory = ShardCache(shard, host.holding.shards)
        self.outages = outages
        self._host = host
        self._writer = ShardWriter(
            host, shard, epoch, carried.seen, self._written, self._arm, self._failed, outages.settle
        )
        outages.connect(
            self._have_outage_written,
            (self.memory.outages_are, plane.checkpoints.outages_are),
            plane.recurring,
        )
        self._admission = AdmissionScheduler(self._writer, self.memory)
        self.memory.loads.connect(host, self._admission.request)
        self._limits = LimitCoordinator(self._writer)
        self._inbox = Inbox(self._writer, self.memory, plane)
        self._deadlines = Deadlines(host, shard, self._writer, self._inbox, self.memory)
        plane.elsewhere.connect(self._inbox.hand_messages)
        self._attempts = Attempts(self._writer, self.memory, index)
        self._outbox = OutboxRelay(self._writer, self.memory, index, self._attempts)
        self._quarantine = Quarantine(self._writer, self.memory, self._admission, self._attempts)
        self._suspension = ShardSuspension(self._writer, self.memory, plane, carried.done, self._suspensions_carried)
        self._draining = False
        self._wake_at: int | None = None

    # -- life ---------------------------------------------------------------------------------------------------------

    def recover(self, controls: ScopeSuspensions, read_at: int) -> Operation[None]:
        """Reads all open rows, then serves. After the fence no write of an older epoch can change them.

        Args:
            controls: Scope suspensions, read after the fence.
            read_at: Instant at which their read began.
        """
        rows: list[Item] = []
        self.memory.left_rows.suspensions_changed(controls.version, read_at)
        yield from self._wait_for_the_present()
        yield from self._suspension.begin(controls)
        yield from self._recover_recurring()
        yield from self._inbox.hand_messages()
        yield from self.plane.recover()
        for prefix in (keys.JOB_PREFIX, keys.RUN_PREFIX, keys.OUTBOX_PREFIX):
            rows.extend((yield from self._writer.read_range(*keys.prefix_range(prefix))))
        rows.extend((yield from self._read_timers()))
        for row in rows:
            key = Key(str(row["pk"]), str(row["sk"]))
            self._writer.view.learn([key], {key: row})
            self.memory.apply_row(key, row)
        if self._draining:
            return  # A draining shard begins nothing.
        # First: the lease must carry the suspensions before a decision follows them.
        self._suspension.recover()
        self.outages.served()
        self._host.operations.start(self._writer.serve())
        self._attempts.recover()
        self._outbox.recover()
        self._host.operations.start(self._inbox.serve())
        self._host.operations.start(self._limits.sweep())
        self._host.operations.start(self._sweep())
        self._host.operations.start(TimerSweep(self._writer).serve())
        self._host.operations.start(RepairSweep(self._writer, self.plane.recurring).serve())
        for ref in self.memory.waiting_refs():
            self._admission.request(ref)
        self._arm()

    def _wait_for_the_present(self) -> Operation[None]:
        """Waits until this node's clock has passed the last outage. Its end comes from its author's clock, which may be ahead."""
        end = max((outage.end for outage in self.outages.known), default=0)
        ahead = end - self._host.now
        if ahead > 0:
            yield from self._host.sleep(min(ahead, CLOCKS_APART_MS))

    def _recover_recurring(self) -> Operation[None]:
        """Loads recurring messages: their fires have no rows, so they must be known before the first fire and before any checkpoint."""
        records = yield from self._writer.read_range(*keys.prefix_range(keys.RECURRING_PREFIX))

        def place(ref: str, summons: Key | None) -> None:
            self._writer.add(PlaceRecord(ref, self.plane.recurring, summons))

        def place_alone(ref: str, summons: Key) -> Operation[None]:
            give_up = self._host.now + WRITER_PATIENCE_MS
            while not self._writer.is_idle and self._host.now < give_up:
                yield from self._host.sleep(WRITER_CHECK_MS)
            yield from self._writer.decide_alone(PlaceRecord(ref, self.plane.recurring, summons))

        self.plane.recurring.begin(records, place, place_alone)

    def drain(self) -> Operation[None]:
        """Takes no new work, even before it is recovered, and waits for the transaction in progress."""
        self._draining = True
        # Without this shard the node writes newer heartbeats, and they would hide the outage.
        self._have_outage_written()
        yield from self._host.wait_while(lambda: self.outages.is_open)
        self._inbox.close()
        self._attempts.close()
        self._limits.close()
        self._writer.close()
        yield from self._host.wait_while(lambda: not self._writer.is_idle)

    def _have_outage_written(self) -> None:
        """Stores outage facts; during a drain outside the shard writer, which takes no more work or never ran. Late fires wait for the facts."""
        if self._draining:
            self._host.start_safely("outage", f"shard {self.shard}", self.outages.settle())
        else:
            self._writer.add(WriteDownOutage(self.outages, f"shard {self.shard}"))

    @property
    def is_draining(self) -> bool:
        return self._draining

    def suspensions_changed(self, controls: ScopeSuspensions, read_at: int) -> None:
        """Called after each read of the scope suspensions, whether they have changed or not."""
        self.memory.left_rows.suspensions_changed(controls.version, read_at)
        self._suspension.take(controls)
        self._inbox.count_outdated_rows()

    def _suspensions_carried(self) -> None:
        """Handles deferred rows. Called when the lease carries a new version of the scope suspensions."""
        self._inbox.count_resumed_rows()
        self.memory.requeue_deferred()
        self._arm()

    def wake(self, run_id: str | None) -> None:
        """Handles a wake-up.

        Args:
            run_id: None: the inbox has a new row. Key of a shared limit: it has a free permit or a new queue entry. Otherwise the id of a run
                whose row has changed, or of a job that has an offer.
        """
        if self._draining:
            return
        if run_id is None:
            self._inbox.wake()
        elif run_id.startswith(keys.SHARED_LIMIT):
            self._limits.wake(run_id)
        else:
            self._attempts.check(run_id)
            job = self.memory.jobs.get(run_id)
            if job is not None and job.state == "pending_constraint":
                self._admission.request(job.ref)

    def _failed(self, work: Work, error: Exception) -> None:
        self._quarantine.take(work, error)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _written(self, key: Key, item: Item | None) -> None:
        """Called for each row that a transaction of this shard has written: updates memory and starts the next steps."""
        if key.table != "main" or key.pk != keys.shard_pk(self.shard):
            return
        prefix, name = keys.split_prefix(key)
        job_before = self.memory.jobs.get(name) if prefix == keys.JOB_PREFIX else None
        run_before = self.memory.runs.get(name) if prefix == keys.RUN_PREFIX else None
        known = key in self.memory.outbox
        self.memory.apply_row(key, item)
        if prefix in {keys.RECURRING_PREFIX, keys.MESSAGE_TIMER_PREFIX}:
            self.plane.recurring.learn(key, item)
        if prefix == keys.JOB_PREFIX:
            self._follow_job(job_before, None if item is None else from_item(Job, item))
        elif prefix == keys.RUN_PREFIX:
            self._follow_run(run_before, None if item is None else from_item(Run, item))
        elif prefix == keys.OUTBOX_PREFIX and item is not None:
            self._outbox.follow(key, known)
        self._arm()

    def _follow_job(self, before: Job | None, job: Job | None) -> None:
        if job is not None and job.state == "pending_constraint" and job.unmet is None:
            self._admission.request(job.ref)
        elif job is None and before is not None:
            self._admission.request(before.ref)  # The job expired or was cancelled: the next one may start.

    def _follow_run(self, before: Run | None, run: Run | None) -> None:
        self._attempts.follow(before, run)
        if run is None and before is not None:
            for limit in before.limits:
                for ref in self.memory.released(limit):
                    self._admission.request(ref)
            for home, shared in homes_of(before.limits, self._host.holding.shards):
                # A rate gets a permit back early only if the run never started. Jobs may have waited for it since.
                if before.started_at is None if keys.is_rate(shared) else before.queued:
                    self._host.emit(WakeUp(home, shared.pk))
            self._admission.request(before.ref)

    # -- time ---------------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        wake = self.memory.next_wake()
        if wake is not None and (self._wake_at is None or wake < self._wake_at):
            self._wake_at = wake
            self._host.call_at(wake, partial(self._due, wake), routine=True)  # `ShardCache.next_due` says what is due.

    def _due(self, armed: int) -> None:
        if self._wake_at == armed:
            self._wake_at = None
        if self._draining:
            return
        now = self._host.now
        rows = self.memory.take_due(now)
        for row in rows:
            if row.kind == keys.NOMINAL_TIMER:
                self._writer.add(FireSchedule(row, self.memory))
            elif row.kind == keys.RESUME_TIMER:
                self._host.start_safely("until", row.ref, self._resume(row))
            elif row.kind == keys.CHUNKS_TIMER:
                self._host.start_safely("clean_up", row.ref, clean_up(self._host, self.shard, row))
            elif row.kind == keys.LIMIT_TIMER:
                self._writer.add(RemoveIdle(row, self._limits.wake))
        self._deadlines.take([row for row in rows if row.kind == keys.EVIDENCE_TIMER])
        for ref in self.memory.take_held(now):
            self._admission.request(ref)
        self._arm()

    def _resume(self, row: TimerRow) -> Operation[None]:
        """Resumes a schedule after all rows that were in the inbox at the fence: they may include the unfinished suspend itself."""
        yield from self._host.wait_while(lambda: not self._inbox.has_been_read)
        self._writer.add(resume_when_due(row, self.memory, self.plane.recurring, self._host.readings.begun))

    def _read_timers(self) -> Operation[list[Item]]:
        """Reads from the first timer row, overdue ones included: a stall must not lose the rows that fell due in it."""
        self.memory.horizon = self._host.now + TIMER_WINDOW_MS
        high = f"{keys.TIMER_PREFIX}{keys.instant_text(self.memory.horizon)}#{keys.LAST}"
        return (yield from self._writer.read_range(keys.TIMER_PREFIX, high))

    def _sweep(self) -> Operation[None]:
        """Checks what a lost wake-up would have reported, and loads timer rows that come near."""
        next_timers = self._host.now + TIMER_WINDOW_MS // 2
        while True:
            yield from self._host.sleep(
                SWEEP_MS + self._host.jitter(f"sweep {self.shard}", SWEEP_MS // 5), routine=True
            )
            if self._draining:
                return
            self._attempts.check_all()
            yield from self._check_inbox_and_queues()
            if self._host.now >= next_timers:
                next_timers = self._host.now + TIMER_WINDOW_MS // 2
                for item in (yield from self._read_timers()):
                    self.memory.apply_row(Key(str(item["pk"]), str(item["sk"])), item)
                self._arm()

    def _check_inbox_and_queues(self) -> Operation[None]:
        """Checks the inbox and the limit queues with one read. Both are nearly always empty, and most calls of an idle cluster are these."""
        page = yield from self._host.read_for_good(ReadRange(keys.brought_by_others(self.shard)))
        assert isinstance(page, Page)
        if not page.items:
            self._inbox.forget_removed_rows()
        elif not self._draining:
            self._inbox.wake()
            self._host.operations.start(self._limits.sweep())
