"""Admission: a job without blockers becomes a run, with all its permits, in one transaction (I4, I7).

Called by the admission scheduler, and by dry runs that are never written. It writes runs, permits, queue entries and
ended jobs.
Check and act are one write: the transaction's conditions demand the rows that the decision has read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from tidegate_core.admission import overlap_rules, permits
from tidegate_core.admission.abandoned_queue import AbandonedQueue, close_abandoned, would_be_granted
from tidegate_core.admission.eligibility import (
    Blocker,
    constraint_blockers,
    is_already_reported,
    next_check_at,
    only_loads,
    unmet_text,
)
from tidegate_core.admission.overlap_enforcement import holders_of, settle_jobs
from tidegate_core.admission.pending_timeout import CatchUpThrottle, after_pending_timeout, served_until
from tidegate_core.language.definitions.run_policies import Priority
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.targets.argument_templates import Unresolved
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.shard.job_order import by_class, flexible_hold
from tidegate_core.shard.jobs import end_job
from tidegate_core.shard.launch_values import resolve_order, run_of
from tidegate_core.shard.limits import limit_queue_entry as asking
from tidegate_core.shard.load_sampling import SAMPLE_EVERY_MS
from tidegate_core.shard.run_history import note_admission, remembered_by
from tidegate_core.shard.schedule_state import (
    admits,
    awaits_backlog_cut,
    oldest_kept_generation,
    parks,
    rebind_job,
    spec_of,
    version_of,
)
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes import conditions
from tidegate_core.writes.limit_permits import key_of
from tidegate_core.writes.unit_of_work import UnitOfWork

ADMITTED_TOGETHER = 8
"""Jobs of one schedule in one decision: each takes four actions, and a schedule has one decision at a time."""
ASKED_TOGETHER = 8
"""Jobs of one schedule in the queue of a shared limit. Later jobs come after them in any case. As soon as one of them
leaves, the next joins."""
ASKED_APART = 32
"""Jobs of one schedule that wait at a time, each for different limits. A keyed limit exists for each value of its key,
so jobs of different keys do not block each other. Each decision reads the limits of all these jobs.
"""
LINE_MAX = 500
"""Waiting jobs that a decision checks for limits that differ from those of earlier jobs."""
REVISIONS_PER_ATTEMPT = 1_000_000
"""More than one attempt ever writes its run's item. A suspend deletes the item of a parked attempt. A late write of
that attempt must not match the item of the next one.
"""
ADMITTED_WITHIN_MS = 10_000
"""A window or a rate is judged by the clock. If the store has not answered for this long, the admission is decided
again. Hours later the program would start outside its window, and a rate would no longer count it.
"""
WAITING_ACTIONS = 16
"""After this many actions a decision adds no further job to queues. A job whose places in up to 16 queues have moved
takes up to 65 actions, with the queue marks.
"""
LEFT_ACTIONS = 45
"""After this many actions a decision removes no further job from its queues. A job is in up to 16 queues."""
CANCEL_AGAIN_MS = 10_000
"""A run that must end for a waiting job is cancelled again after this time: the owner that sent the first cancel may
have died."""
NEVER = 1 << 62


class _Waiting(NamedTuple):
    """A job that this decision does not admit."""

    job: Job
    unmet: list[Blocker]
    needs: list[asking.LimitRequest]
    priority: Priority
    deadline: int
    """End of its pending time-out."""
    alone: bool = False
    """Whether its admission may block jobs after it: a permit offered to one of them could stay unused."""

    @property
    def queues(self) -> bool:
        """Whether shared limits are its only blockers. Otherwise an offered permit would stay unused while other jobs
        could take it.
        """
        return all(each.is_shared for each in self.unmet)

    @property
    def waits_for_limits_only(self) -> bool:
        """Whether the job could start if enough runs ended, and is not forced."""
        return not self.job.force_overlap and all(each.is_limit for each in self.unmet)


class _Holder(NamedTuple):
    """A job that blocks later jobs of its version and class.

    Attributes:
        catch_up: Whether it is a catch-up job.
        priority: Priority of its version.
        alone: As in `_Waiting`; it also blocks jobs of lower classes.
    """

    version: int
    catch_up: bool
    priority: Priority
    alone: bool


def _nobody(run_id: str) -> None:
    """For dry runs, which have no runs to cancel."""


@dataclass(frozen=True, slots=True)
class AdmitNext:
    """Decides on the first waiting jobs of a schedule, in the order of `job_order.py`. Jobs that cannot start wait, or
    end by the overlap policy.

    Attributes:
        decided: Callback after the commit: whether the next jobs can be decided on now.
        most: Number of jobs to decide on.
        cancel: Callback for each run that must end for a waiting job (`cancel_running`).
        looked_at: Job that was decided on last. When a decision on one job fails, this names the job at fault.
        waiting_actions: Number of actions after which no further job is added to queues. A dry run needs no such bound.
    """

    ref: str
    memory: ShardCache
    decided: Callable[[bool], None]
    most: int = ADMITTED_TOGETHER
    cancel: Callable[[str], None] = _nobody
    looked_at: list[str] = field(default_factory=list, compare=False)
    waiting_actions: int = WAITING_ACTIONS
    name: str = "admit"

    @property
    def about(self) -> str:
        return self.ref

    @property
    def stale(self) -> tuple[Key, ...]:
        """Limits that owners of other shards also write, and queue entries that the limit coordinators may have
        removed.
        """
        limits = self.memory.shared_limits(self.ref)
        if not limits:
            return ()
        asking = [job for job_id in self.memory.waiting(self.ref) if (job := self.memory.jobs[job_id]).asked]
        # Some of these jobs may be skipped, and then later ones are decided on.
        return (*limits, *(key_of(text) for job in asking[: 2 * ASKED_APART] for text in job.asked))

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, schedule = self.ref.split("/", 1)
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, namespace, schedule))
        goes_on = False
        self.looked_at.clear()
        if state is not None and admits(state) and not unit.controls.covers(namespace):
            unit.items(self.stale)  # One read instead of one for each key used below.
            try:
                goes_on = self._decide_first(unit, state, now)
            except AbandonedQueue as found:
                close_abandoned(unit, found)
                return
        elif state is not None and parks(state):
            most = 1 if self.most == 1 else overlap_rules.SETTLED_TOGETHER
            # Jobs that a resume has cut from the backlog, but not ended, are not merged with jobs that stay.
            jobs = [job for job in self._waiting_jobs(unit, state, now) if not awaits_backlog_cut(state, job)]
            goes_on = settle_jobs(unit, self.memory, jobs, most, now, self._look_at, parked=True)
        unit.after(lambda: self.decided(goes_on))

    def _decide_first(self, unit: UnitOfWork, state: ScheduleState, now: int) -> bool:
        """Goes through the jobs in order; returns whether more can be done now.

        The first job that must wait blocks the later jobs of its version and class, unless shared limits are its only
        blockers. In that case the later jobs also join their queues, because one of them may get an offer earlier. Of
        many such jobs only the first few join, and those that need none of the limits that these wait for. A catch-up
        job that waits for another catch-up run blocks no job. Later jobs are still checked for their time-outs, because
        earlier jobs may be allowed to wait longer.
        """
        gone, waiting, paced = set[str](), list[_Waiting](), list[_Waiting]()
        held_up_by, passed_by, behind = set[_Holder](), list[str](), list[str]()
        pacing = CatchUpThrottle.of(self.memory, self.ref)
        for place, known in enumerate(self._line(unit, state)):
            job_id = known.id
            if self._is_enough(gone) and (pacing.turn is None or not known.catch_up):
                break
            if paced and not known.asked and pacing.hold_of(known) is not None:
                # The first job reports the reason for all. The others are not read, because there may be more than the
                # shard's view holds.
                continue
            if held_up_by and self._is_held_up(unit, state, known, held_up_by):
                behind.append(job_id)
                continue
            if self._comes_behind(unit, state, known, place, waiting, now):
                passed_by.append(job_id)
                continue
            job = unit.record(Job, keys.job(unit.shard, job_id))
            if job is None or job.state != "pending_constraint":
                continue
            job = rebind_job(state, job, now)
            hold = pacing.hold_of(job)
            if hold is not None:
                paced.append(_Waiting(replace(job, in_turn=None), [Blocker(hold, aborts=False)], [], "low", NEVER))
                continue
            before = list(self.looked_at)
            self._look_at(job.id)
            spec = spec_of(unit, job.namespace, job.name, job.version)
            assert spec is not None
            job = pacing.start_turn(job, spec.pending_timeout, now)
            if self._is_enough(gone):
                self.looked_at[:] = before  # The job is readable, so a later write error belongs to another job.
                unit.put(job, job.key(unit.shard))  # Stored, so that the next decision sees the job in its turn too.
                break
            waits = self._decide_one(unit, state, spec, job, now, ahead=sum(each.queues for each in waiting))
            if waits is None:
                gone.add(job.id)
                pacing.note_end(job, has_run=unit.record(Run, keys.run(unit.shard, job.id)) is not None)
                continue
            if waiting and self.most == 1:
                # The job was not admitted, so nothing is written about it together with the first waiting job.
                self.looked_at[:] = before
                passed_by.append(job_id)
                continue
            waiting.append(waits)
            if not waits.queues or waits.alone:
                held_up_by.add(_Holder(job.version, bool(job.catch_up), waits.priority, waits.alone))
        if self._is_enough(gone):
            return True
        if (passed_by or behind) and self._decide_overdue(unit, state, [*passed_by, *behind], waiting, now):
            return True
        # One job reports the reason for all. Jobs in queues leave them, because an offer to them would stay unused.
        waiting += [each for number, each in enumerate(paced) if number == 0 or each.job.asked]
        if waiting and self._settle(unit, state, waiting[0], gone, now):
            return True
        goes_on = self._wait(unit, waiting, now)
        self.memory.remember_shared_limits(self.ref, [need.limit for each in waiting for need in each.needs])
        if goes_on:
            return True
        return bool(held_up_by) and self._leave_queues(unit, behind, {waits.job.id for waits in waiting})

    def _line(self, unit: UnitOfWork, state: ScheduleState) -> list[Job]:
        """Returns the jobs that stay, as the cache has them, in decision order.

        A request that ends a schedule's jobs does so page by page. Jobs that it has not ended yet, or cannot end, block
        no job. They are not read, because there may be thousands.
        """
        known = [self.memory.jobs[job_id] for job_id in self.memory.waiting(self.ref)]
        going_on = [job for job in known if job.generation >= oldest_kept_generation(state)]
        line = [job for job in going_on if not unit.drops(state.namespace, job.satisfied_at)]
        if len({version_of(state, version) for version in dict.fromkeys(job.version for job in line)}) < 2:
            return line

        def priority_of(version: int) -> Priority:
            try:
                spec = spec_of(unit, state.namespace, state.name, version_of(state, version))
            except ValueError:
                # An unreadable definition must fail only the decision on its own jobs, not on earlier jobs.
                return "lowest"
            assert spec is not None
            return spec.priority

        return by_class(line, priority_of)

    def _is_held_up(self, unit: UnitOfWork, state: ScheduleState, known: Job, held_up_by: AbstractSet[_Holder]) -> bool:
        """Whether an earlier job blocks this one.

        Under `allow` jobs are independent: jobs of one version have the same constraints and are blocked together. Jobs
        that an update lets finish wait for their own
        constraints. A job is blocked only by jobs of its class. A delay of on-time jobs says nothing about catch-up
        jobs, and a steady
        flow of on-time jobs would block catch-up for ever.
        """
        version, catch_up = version_of(state, known.version), bool(known.catch_up)
        if any(each.version == version and (each.alone or each.catch_up == catch_up) for each in held_up_by):
            return True
        spec = spec_of(unit, known.namespace, known.name, version)
        assert spec is not None
        mine = (catch_up, spec.priority)
        is_held_up = any(each.alone or (each.catch_up, each.priority) == mine for each in held_up_by)
        return spec.overlap != "allow" and is_held_up

    def _comes_behind(
        self,
        unit: UnitOfWork,
        state: ScheduleState,
        known: Job,
        place: int,
        waiting: Sequence[_Waiting],
        now: int,
    ) -> bool:
        """Whether a job needs a limit that earlier jobs already wait for, so that it need not be decided on now.

        It reads no rows, because there may be thousands of jobs. The first few jobs are always decided on, so that
        several permits can be taken at once.
        """
        # A decision on one job is the retry after a failed decision on several: it must show which job is at fault.
        mine = sum(bool(each.job.catch_up) == bool(known.catch_up) for each in waiting)
        if mine < (1 if self.most == 1 else ASKED_TOGETHER):
            return False
        if self.most == 1 or len(waiting) >= ASKED_APART or place >= LINE_MAX:
            return True
        job = rebind_job(state, known, now)
        spec = spec_of(unit, job.namespace, job.name, job.version)
        assert spec is not None
        waited_for = {each.shared for waits in waiting for each in waits.unmet}
        try:
            return any(permits.limit_key(unit.shard, each) in waited_for for each in permits.limits_of(spec, job))
        except Unresolved:
            return False  # The decision on the job ends it.

    def _decide_overdue(
        self,
        unit: UnitOfWork,
        state: ScheduleState,
        behind: Sequence[str],
        waiting: list[_Waiting],
        now: int,
    ) -> bool:
        """Decides on blocked jobs whose own time-out has passed; returns whether one of them was admitted or ended.

        Their deadlines may be earlier than those of jobs before them, if an earlier job was forced or created under a
        longer time-out.
        """
        first, following = waiting[0], NEVER
        for job_id in behind:
            known = self.memory.jobs[job_id]
            if (
                known.generation < oldest_kept_generation(state)
                or unit.drops(state.namespace, known.satisfied_at)
                or known.catch_up  # It times out with its turn, which other jobs share.
            ):
                continue
            present = rebind_job(state, known, now)
            if present.deadline > now:
                following = min(following, present.deadline)
                continue
            spec = spec_of(unit, present.namespace, present.name, present.version)
            assert spec is not None
            deadline = served_until(state, present, self.memory.outages)
            if deadline > now:
                following = min(following, deadline)
                continue
            if spec.pending_timeout_action == "alert":
                # Only the first job raises the alert. The others are not read, because there may be more than the
                # shard's view holds.
                continue
            if spec.pending_timeout_action == "force" and len(waiting) >= ASKED_TOGETHER:
                continue
            stored = unit.record(Job, known.key(unit.shard))
            if stored is None or stored.state != "pending_constraint":
                continue
            job = rebind_job(state, stored, now)
            before = list(self.looked_at)
            self._look_at(job.id)
            ahead = sum(each.queues for each in waiting)
            waits = self._decide_one(unit, state, spec, job, now, ahead, first.unmet)
            if waits is None:
                return True
            self.looked_at[:] = before
            waiting.append(waits)
        if following < NEVER:
            unit.after(lambda: self.memory.hold(self.ref, following))
        return False

    def _leave_queues(self, unit: UnitOfWork, behind: Sequence[str], staying: AbstractSet[str]) -> bool:
        """Removes blocked jobs from their queues; returns whether some are left for the next decision.

        Each would get an offer in turn, and no decision here would use it before it lapses.
        """
        left = 0
        for job_id in behind:
            if job_id in staying or not self.memory.jobs[job_id].asked:
                continue
            if left and unit.actions > LEFT_ACTIONS:
                return True
            left += 1
            job = unit.record(Job, keys.job(unit.shard, job_id))
            if job is not None and job.asked:
                unit.put(asking.leave(unit, job), job.key(unit.shard))
        return False

    def _look_at(self, job_id: str) -> None:
        self.looked_at[:] = [job_id]

    def _is_enough(self, gone: AbstractSet[str]) -> bool:
        """Whether the transaction is full: it takes one permit of a limit that other shards also write."""
        return len(gone) >= self.most or (bool(gone) and bool(self.memory.shared_limits(self.ref)))

    def _settle(
        self, unit: UnitOfWork, state: ScheduleState, first: _Waiting, gone: AbstractSet[str], now: int
    ) -> bool:
        """Applies the overlap policy to the jobs that must wait; returns whether it ends some of them.

        Args:
            unit: Unit of work of this decision.
            state: State of the schedule.
            first: First of the waiting jobs.
            gone: Jobs that this decision has admitted or ended; if there are any, the policy ends jobs only in the next
                decision.
            now: The present.
        """
        jobs = [job for job in self._waiting_jobs(unit, state, now) if job.id not in gone]
        most = 1 if self.most == 1 else overlap_rules.SETTLED_TOGETHER
        if settle_jobs(unit, self.memory, jobs, most, now, self._look_at, only_asks=bool(gone)):
            return True
        spec = spec_of(unit, first.job.namespace, first.job.name, first.job.version)
        assert spec is not None
        if spec.overlap == "cancel_running" and first.waits_for_limits_only:
            holders = holders_of(unit, self.memory, spec)
            for run_id in overlap_rules.to_cancel(first.job, permits.own_limit(spec).max, holders, self.memory.runs):
                unit.after(partial(self.cancel, run_id))
            unit.after(lambda: self.memory.hold(self.ref, now + CANCEL_AGAIN_MS))
        return False

    def _waiting_jobs(self, unit: UnitOfWork, state: ScheduleState, now: int) -> list[Job]:
        """Returns the jobs that stay, in order, as the state makes them."""
        return [rebind_job(state, job, now) for job in self._line(unit, state)]

    def _decide_one(
        self,
        unit: UnitOfWork,
        state: ScheduleState,
        spec: ScheduleSpec,
        job: Job,
        now: int,
        ahead: int,
        behind: Sequence[Blocker] = (),
    ) -> _Waiting | None:
        """Admits or ends the job, or returns it if it must wait.

        Args:
            unit: Unit of work of this decision.
            state: State of the schedule.
            spec: Definition of the job's version.
            job: The job as the state makes it.
            now: The present.
            ahead: Number of earlier jobs that wait for shared limits only.
            behind: Blockers of the first job, if that job blocks this one.
        """
        try:
            wanted = permits.required_limits(unit, self.memory, spec, job)
        except Unresolved as problem:
            end_job(unit, job, "skipped", "unresolved_template", now, str(problem))
            return None
        waits = self._decide_on(unit, state, spec, wanted, job, now, ahead, behind)
        if waits is None:
            unit.after(partial(self.memory.forget_limits_of_keys, self.ref, [each.key for each in wanted]))
        return waits

    def _decide_on(
        self,
        unit: UnitOfWork,
        state: ScheduleState,
        spec: ScheduleSpec,
        wanted: Sequence[permits.RequiredLimit],
        job: Job,
        now: int,
        ahead: int,
        behind: Sequence[Blocker],
    ) -> _Waiting | None:
        # All blockers are evaluated at one instant.
        unmet = constraint_blockers(unit, spec, job, now, self.memory.loads.seen)
        unmet += permits.unmet_permits(unit, self.memory, wanted, job, ahead, now)
        if not unmet and spec.pending_timeout_action == "abort":
            unmet = list(behind)
        deadline = served_until(state, job, self.memory.outages)
        late = after_pending_timeout(unit, spec, job, unmet, deadline, now)
        job, unmet = late.job, late.unmet
        # Before its instant in a flexible window nothing ends the job.
        is_early = flexible_hold(spec, job, now) is not None
        aborting = None if is_early or late.has_ended else self._aborting(unit, spec, wanted, job, unmet, now)
        if late.has_ended:
            return None
        if not unmet:
            self._admit(unit, state, spec, wanted, job, now)
        elif aborting is not None:
            end_job(unit, job, "skipped", aborting.hold.reason_code, now, aborting.hold.reason)
        else:
            # A forced job ignores rates. A request for a rate would keep it out of every queue until the rate has room.
            asked = [each for each in wanted if each.limit.span is None] if late.is_forced else wanted
            needs = permits.needs_of(unit, asked, job, now)
            return _Waiting(job, unmet, needs, spec.priority, deadline, alone=remembered_by(spec) > 0)
        return None

    def _aborting(
        self,
        unit: UnitOfWork,
        spec: ScheduleSpec,
        wanted: Sequence[permits.RequiredLimit],
        job: Job,
        unmet: Sequence[Blocker],
        now: int,
    ) -> Blocker | None:
        """Returns the blocker that ends the job instead of making it wait. Jobs that wait for a limit do not count if
        it has a permit for this job too.
        """
        most = {each.key: each.limit.max for each in wanted}
        for each in unmet:
            if not each.aborts:
                continue
            limit = each.behind
            if limit is None:
                return each
            mine = asking.row_for(job, limit, most[limit], spec.priority, now)
            if not would_be_granted(unit, limit, mine, self.memory.shards, now):
                return each
        return None

    # -- waiting ------------------------------------------------------------------------------------------------------

    def _wait(self, unit: UnitOfWork, waiting: Sequence[_Waiting], now: int) -> bool:
        """Makes the jobs wait in queues, for an instant, or for a permit of the schedule's own limit.

        Returns:
            Whether some jobs are left for the next decision.
        """
        places: list[asking.QueueEntries] = []
        before = unit.actions
        for waits in waiting:
            to_mark = {limit for place in places for limit in place.joined}
            if places and unit.actions - before + 2 * len(to_mark) > self.waiting_actions:
                break
            job, unmet, needs, priority, *_ = waits
            if waits.queues:
                place = asking.wait_for(unit, job, needs, priority, self.memory.shards, now)
            else:
                place = asking.QueueEntries(asking.leave(unit, job), (), asking.NEVER, asking.NEVER)
            places.append(place)
            told = job.unmet if is_already_reported(job.unmet, unmet, now) else unmet_text(unmet, now)
            kept = replace(place.job, unmet=told)
            if kept != unit.record(Job, job.key(unit.shard)) or place.wrote:
                # The job is also written if only a queue entry changes. A late repeat of this transaction must find
                # that the job has moved on.
                unit.put(kept, job.key(unit.shard))
            self._look_again(unit, waits, now, place)
        asking.mark(unit, places, self.memory.shards, now)
        return len(places) < len(waiting)

    def _look_again(self, unit: UnitOfWork, waits: _Waiting, now: int, place: asking.QueueEntries) -> None:
        unmet = waits.unmet
        # The coordinator of a rate acts when the rate has room. Only the jobs that get an offer need to wake up.
        until = None if waits.queues else next_check_at(unmet)
        # A time-out that the job outlived needs no wake-up.
        deadline = waits.deadline if waits.deadline > now else NEVER
        loads = only_loads(unmet)
        sampled = now + SAMPLE_EVERY_MS if loads else NEVER
        due = min(deadline, NEVER if until is None else until, sampled)
        own = [each.own for each in unmet if each.own is not None]
        unit.after(lambda: self.memory.hold(self.ref, min(due, place.look_again), own, due=min(due, place.due)))
        for load in loads:
            unit.after(partial(self.memory.loads.wait_for, load, self.ref))

    # -- the admission ------------------------------------------------------------------------------------------------

    def _admit(
        self,
        unit: UnitOfWork,
        state: ScheduleState,
        spec: ScheduleSpec,
        wanted: Sequence[permits.RequiredLimit],
        job: Job,
        now: int,
    ) -> None:
        sealed = _seal(unit, job, spec)
        try:
            order = resolve_order(spec, sealed)
        except Unresolved as problem:
            end_job(unit, sealed, "skipped", "unresolved_template", now, str(problem))
            return
        unit.require(state.key(unit.shard), conditions.schedule_is(state.status, state.generation))
        unit.send_until(now + ADMITTED_WITHIN_MS)
        held = permits.take(unit, wanted, job, now, self.memory.shards)
        remembered = note_admission(unit, spec, job, now) or None
        run = replace(run_of(sealed, spec.priority, order, held.limits, now), queued=held.queued, remembered=remembered)
        unit.put_new(run, run.key(unit.shard), behind=REVISIONS_PER_ATTEMPT * run.free_attempts)
        unit.put(replace(asking.leave(unit, sealed), state="pending_launch", unmet=None), job.key(unit.shard))


def _seal(unit: UnitOfWork, job: Job, spec: ScheduleSpec) -> Job:
    """Seals the evidence at the launch intent: later events belong to the next job.

    Evidence that was missing when the trigger fired may have arrived since.
    """
    if job.evidence_id is None or job.chunks is not None:
        return job
    key = keys.evidence(unit.shard, job.namespace, job.name, job.evidence_correlation)
    evidence = unit.record(Evidence, key)
    assert evidence is not None
    assert evidence.id == job.evidence_id
    unit.delete(key)
    missing = job.missing
    if missing and isinstance(spec.trigger, EventTrigger):
        short = spec.trigger.missing(evidence.counts)
        missing = () if short is None else spec.trigger.shortfalls(evidence.counts)
    return replace(job, chunks=evidence.chunks, missing=missing)
