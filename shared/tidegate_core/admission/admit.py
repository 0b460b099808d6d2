"""Admission: a job whose constraints hold becomes a run, with all its permits, in one transaction (I4, I7).

Check and act are the same write: what this decision read is what the transaction's conditions demand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from tidegate_core.admission import overlap_rules, permits
from tidegate_core.admission.abandoned_queue import AbandonedQueue, close_abandoned, would_be_granted
from tidegate_core.admission.catch_up_throttle import CatchUpThrottle
from tidegate_core.admission.eligibility import (
    Blocker,
    constraint_blockers,
    is_already_reported,
    next_check_at,
    only_loads,
    unmet_text,
)
from tidegate_core.admission.overlap_enforcement import holders_of, settle_jobs
from tidegate_core.admission.pending_timeout import after_pending_timeout, served_until
from tidegate_core.language.definitions.priority import Priority
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
"""Jobs of one schedule in one decision: four actions each, and a schedule has one decision under way."""
ASKED_TOGETHER = 8
"""Jobs of one schedule in the queue of a shared limit: those behind them come after them in any case, and as soon as one of
these goes the next one joins.
"""
ASKED_APART = 32
"""Jobs of one schedule that wait at a time, each for limits of its own: of keys there is one for each value, and who waits for one keeps
nobody from another. Each look reads the limits of all of them.
"""
LINE_MAX = 500
"""Jobs in line of which a look asks whether they need other limits than those before them."""
REVISIONS_PER_ATTEMPT = 1_000_000
"""More than one attempt ever writes its run's item. An attempt that a suspend took back leaves no item behind, and writes of it
that come late must not fit to the next one's."""
ADMITTED_WITHIN_MS = 10_000
"""What was judged by the clock, a window or a rate, is judged anew when the store has given no answer for so long: hours later a program
would start out of its window, and a rate would not count it any more."""
WAITING_ACTIONS = 16
"""Behind so many actions a look has no further job wait: one whose places in up to 16 queues have moved takes up to 65, with the marks."""
LEFT_ACTIONS = 45
"""Behind so many actions a look has nobody else leave its queues: a job stands in up to 16."""
CANCEL_AGAIN_MS = 10_000
"""A run that has to end for a job that waits is asked for again: whoever asked first may have fallen."""
NEVER = 1 << 62


class _Waiting(NamedTuple):
    """A job that is not admitted at this look."""

    job: Job
    unmet: list[Blocker]
    needs: list[asking.LimitRequest]
    priority: Priority
    deadline: int
    """When its pending time-out is over."""
    alone: bool = False
    """Its admission may hold back those behind it: a slot that one of them was offered could stand free for nobody."""

    @property
    def queues(self) -> bool:
        """Whether shared limits are all that it waits for. Else a slot would stand free for it while others could have it."""
        return all(each.is_shared for each in self.unmet)

    @property
    def waits_for_limits_only(self) -> bool:
        """Whether it could go if enough runs ended, and is not forced."""
        return not self.job.force_overlap and all(each.is_limit for each in self.unmet)


class _Holder(NamedTuple):
    """A job that holds up those of its version and class behind it.

    Attributes:
        catch_up: It makes up for the past.
        priority: Of its version.
        alone: As of `_Waiting`: it holds up those of lower classes too.
    """

    version: int
    catch_up: bool
    priority: Priority
    alone: bool


def _nobody(run_id: str) -> None:
    """For decisions on a desk, which has no runs to cancel."""


@dataclass(frozen=True, slots=True)
class AdmitNext:
    """Decides on the first waiting jobs of a schedule, in the order of `job_order.py`; what cannot go now waits as overlap says.

    Attributes:
        decided: Called when that is in the store, with whether the jobs behind them can be decided on now.
        most: Jobs to decide on.
        cancel: Called with each run that has to end for a job that waits (`cancel_running`).
        looked_at: The job that was decided on last; of a decision on one it says whose fault it is that it cannot be taken.
        waiting_actions: Behind so many actions it has no further job wait. A look that is never written need not be bounded so.
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
        """Limits that other shards' owners write too, and rows that their homes may have taken away."""
        limits = self.memory.shared_limits(self.ref)
        if not limits:
            return ()
        asking = [job for job_id in self.memory.waiting(self.ref) if (job := self.memory.jobs[job_id]).asked]
        # Some of them may be passed over: those behind them are looked at as well.
        return (*limits, *(key_of(text) for job in asking[: 2 * ASKED_APART] for text in job.asked))

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, schedule = self.ref.split("/", 1)
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, namespace, schedule))
        goes_on = False
        self.looked_at.clear()
        if state is not None and admits(state) and not unit.controls.covers(namespace):
            unit.items(self.stale)  # One read, instead of one for each that is asked for below.
            try:
                goes_on = self._decide_first(unit, state, now)
            except AbandonedQueue as found:
                close_abandoned(unit, found)
                return
        elif state is not None and parks(state):
            most = 1 if self.most == 1 else overlap_rules.SETTLED_TOGETHER
            # What a resume has cut, and not ended yet, is merged with nothing that goes on.
            jobs = [job for job in self._waiting_jobs(unit, state, now) if not awaits_backlog_cut(state, job)]
            goes_on = settle_jobs(unit, self.memory, jobs, most, now, self._look_at, parked=True)
        unit.after(lambda: self.decided(goes_on))

    def _decide_first(self, unit: UnitOfWork, state: ScheduleState, now: int) -> bool:
        """Goes through the jobs in order; returns whether there may be more to do.

        The first that has to wait is the last of its version and class that is looked at, unless shared limits are all that it waits for:
        those behind it then join their queues as well, and one of them may have been offered a slot before it. Of a crowd the first few do,
        and those that need none of the limits which these wait for. One that makes
        up for the past, and waits for another such run, holds up nobody. Of those behind it the ones that have waited too long are
        looked at: what stands before them may wait for longer.
        """
        gone, waiting, paced = set[str](), list[_Waiting](), list[_Waiting]()
        held_up_by, passed_by, behind = set[_Holder](), list[str](), list[str]()
        pacing = CatchUpThrottle.of(self.memory, self.ref)
        for place, known in enumerate(self._line(unit, state)):
            job_id = known.id
            if self._is_enough(gone) and (pacing.turn is None or not known.catch_up):
                break
            if paced and not known.asked and pacing.hold_of(known) is not None:
                continue  # The first of them tells what all wait for: they are not read, there may be more than the view holds.
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
                self.looked_at[:] = before  # It can be read: what cannot be written from here on is another one's.
                unit.put(job, job.key(unit.shard))  # It is in its turn, also for whoever decides on it next.
                break
            waits = self._decide_one(unit, state, spec, job, now, ahead=sum(each.queues for each in waiting))
            if waits is None:
                gone.add(job.id)
                pacing.note_end(job, has_run=unit.record(Run, keys.run(unit.shard, job.id)) is not None)
                continue
            if waiting and self.most == 1:
                self.looked_at[:] = before  # It has not gone: nothing of it is written beside the first one that waits.
                passed_by.append(job_id)
                continue
            waiting.append(waits)
            if not waits.queues or waits.alone:
                held_up_by.add(_Holder(job.version, bool(job.catch_up), waits.priority, waits.alone))
        if self._is_enough(gone):
            return True
        if (passed_by or behind) and self._decide_overdue(unit, state, [*passed_by, *behind], waiting, now):
            return True
        # One tells what all of them wait for. Those in queues leave them: a slot would stand free for nobody.
        waiting += [each for number, each in enumerate(paced) if number == 0 or each.job.asked]
        if waiting and self._settle(unit, state, waiting[0], gone, now):
            return True
        goes_on = self._wait(unit, waiting, now)
        self.memory.remember_shared_limits(self.ref, [need.limit for each in waiting for need in each.needs])
        if goes_on:
            return True
        return bool(held_up_by) and self._leave_queues(unit, behind, {waits.job.id for waits in waiting})

    def _line(self, unit: UnitOfWork, state: ScheduleState) -> list[Job]:
        """Returns the jobs that go on, as memory has them, in the order in which they are decided on.

        The request that ended a job ends the schedule's jobs page by page. Jobs that it has not ended yet, or cannot end, hold up nobody. They
        are not read: there may be thousands.
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
                return "lowest"  # A definition that cannot be read fails the decision on its own jobs, not on those before them.
            assert spec is not None
            return spec.priority

        return by_class(line, priority_of)

    def _is_held_up(self, unit: UnitOfWork, state: ScheduleState, known: Job, held_up_by: AbstractSet[_Holder]) -> bool:
        """Whether a job waits behind one that holds up those behind it.

        Under `allow` jobs stand beside one another: what the same constraints hold up is held up together, and what an update has let finish
        waits for its own. A job is held up by its class only: a delay of what is due now says nothing of what makes up for the past, and
        on-time jobs that come without end would keep that waiting for ever.
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
        """Whether a job comes behind those that wait, whatever else: a limit that it needs is one that they wait for.

        Without a read: there may be thousands. The first few are looked at in any case, so that as many slots are taken at once.
        """
        # A decision on one job is what is tried when one on several has failed: it has to show whose fault it is.
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
            return False  # It ends.

    def _decide_overdue(
        self,
        unit: UnitOfWork,
        state: ScheduleState,
        behind: Sequence[str],
        waiting: list[_Waiting],
        now: int,
    ) -> bool:
        """Looks at those behind the first that has to wait whose own time-out has passed; returns whether one of them is gone.

        Their deadlines may be earlier than those of jobs before them: of one that was forced, or made under a longer time-out.
        """
        first, following = waiting[0], NEVER
        for job_id in behind:
            known = self.memory.jobs[job_id]
            if (
                known.generation < oldest_kept_generation(state)
                or unit.drops(state.namespace, known.satisfied_at)
                or known.catch_up  # Its time-out is that of a turn, which others have part in.
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
                continue  # The first in line is told of; the others are not read, there may be more than the view holds.
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
        """Has those behind one that holds them up leave the queues that they stood in; returns whether some are left for the next look.

        Each would be offered its slot in turn, and nobody here would look at it before the offer lapses.
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
        """Whether one transaction holds no more; it takes one permit of a limit that other shards write too."""
        return len(gone) >= self.most or (bool(gone) and bool(self.memory.shared_limits(self.ref)))

    def _settle(
        self, unit: UnitOfWork, state: ScheduleState, first: _Waiting, gone: AbstractSet[str], now: int
    ) -> bool:
        """Has overlap judge the jobs that have to wait; returns whether it ends some of them.

        Args:
            unit: Of this decision.
            state: Of the schedule.
            first: The first of them.
            gone: Jobs that this decision has admitted or ended: it has enough to do, the others end in the next one.
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
        """Returns those that go on, in their order, as the state makes them."""
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
        """Returns the job when it waits.

        Args:
            unit: Of this decision.
            state: Of the schedule.
            spec: Of the job's version.
            job: As the state makes it.
            now: The present.
            ahead: Jobs before it that wait for shared limits only.
            behind: What stands in the way of the first job, where that holds up this one.
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
        # All that stands in the way, evaluated at one instant (SEMANTICS 7.1).
        unmet = constraint_blockers(unit, spec, job, now, self.memory.loads.seen)
        unmet += permits.unmet_permits(unit, self.memory, wanted, job, ahead, now)
        if not unmet and spec.pending_timeout_action == "abort":
            unmet = list(behind)
        deadline = served_until(state, job, self.memory.outages)
        late = after_pending_timeout(unit, spec, job, unmet, deadline, now)
        job, unmet = late.job, late.unmet
        # Before its own instant in a flexible window nothing ends it: it has not come yet.
        is_early = flexible_hold(spec, job, now) is not None
        aborting = None if is_early or late.has_ended else self._aborting(unit, spec, wanted, job, unmet, now)
        if late.has_ended:
            return None
        if not unmet:
            self._admit(unit, state, spec, wanted, job, now)
        elif aborting is not None:
            end_job(unit, job, "skipped", aborting.hold.reason_code, now, aborting.hold.reason)
        else:
            # What asks for a rate first, which it ignores by now, would stand in no limit's queue before the rate has room.
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
        """Returns what ends the job instead of having it wait: not that others wait for a limit which has a slot for it as well."""
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
        """Has the jobs wait: in the queues, or for an instant, or until a permit of the schedule's own comes back; returns whether some are
        left for the next look.
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
                # Also when only its row is written: a late repeat of this transaction must find that the job has moved on.
                unit.put(kept, job.key(unit.shard))
            self._look_again(unit, waits, now, place)
        asking.mark(unit, places, self.memory.shards, now)
        return len(places) < len(waiting)

    def _look_again(self, unit: UnitOfWork, waits: _Waiting, now: int, place: asking.QueueEntries) -> None:
        unmet = waits.unmet
        # In the queue of a rate its home looks when the rate has room: of all who wait only those that it offers it to wake up.
        until = None if waits.queues else next_check_at(unmet)
        # A time-out that has passed, and that the job outlives, is nothing to wake up for any more.
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
    """Launch intent seals the evidence: what comes later belongs to the next job (SEMANTICS 5.4, 5.5).

    What was missing as it fired may have come since.
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
