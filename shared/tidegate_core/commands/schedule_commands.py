"""Requests on a schedule: what each makes of its state, and the transaction that moves it (SEMANTICS 10 to 12).

A request is an inbox row until its receipt is on `tidegate.receipts`; a crash anywhere in between replays it, and the stored
receipt tells what is done already.

Order within a request that ends what is pending: first the state moves (nothing older is admitted from then on), then
pending jobs, evidence and runs before the gate end page by page (`end_pending.py`), then the receipt is settled. I7 rests on
that order. Suspend and resume are in `suspend_resume.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate_core.commands.quota_enforcement import count_after
from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.evidence.tick_cursor import first_tick
from tidegate_core.firing import misfires
from tidegate_core.language.definitions.catch_up_policy import is_too_old
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.requests.receipts import Discarded, Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import ScheduleApply, ScheduleRequest
from tidegate_core.language.triggers.search import NEVER, Next, Search
from tidegate_core.language.triggers.trigger import EventTrigger, TimeTrigger
from tidegate_core.language.values.derived_ids import incarnation_of
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.pending_modes import KEEPS_DUE, OnUpdate
from tidegate_core.language.values.problems import Problem
from tidegate_core.messages.recurring.recurring_change import RecurringChange
from tidegate_core.rows import keys
from tidegate_core.rows.receipt import expiry
from tidegate_core.rows.schedule import Definition, PastGeneration, ScheduleState
from tidegate_core.rows.schema_version import BOUNDS
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.events.outbox import gone_row
from tidegate_core.shard.schedule_state import carried_on, fires, oldest_kept_generation, parsed, spec_of
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.shard.timer_rows import as_all_read_it, move_row, nominal_row, tick_row
from tidegate_core.writes.unit_of_work import UnitOfWork

TOMBSTONE_DAYS = 30
"""Of a name that never existed; longer than the requests topic's retention (7 d), so that a replayed older request still
finds it. The tombstone of one that did exist stays: its versions are never given again."""
NEXT_SHOWN = 3


@dataclass(frozen=True, slots=True)
class StateChange:
    """What a request would make of the state: the next state, and what to tell.

    Attributes:
        state: None when nothing changes.
        definition: The version's spec, for `schedule.apply`.
        has_pages: Whether pages follow that end, park or release what is pending, before the answer is settled.
        backlog: Of a resume: instants of the suspended span that are made up for.
        first: First nominal of a schedule that sends messages: those lie in no state, and have no timer row of the run plane.
    """

    status: ReceiptStatus
    state: ScheduleState | None = None
    definition: Definition | None = None
    has_pages: bool = False
    errors: tuple[Problem, ...] = ()
    next: tuple[int, ...] = ()
    backlog: int | None = None
    first: int | None = None


@dataclass(frozen=True, slots=True)
class MoveState:
    """First step of a request on a schedule: the state moves, or the receipt says why it does not.

    Attributes:
        keeps_until: Instant of a timer row of kind `U` that stays: it is what asks for this, and goes when all is done.
        most: How many schedules the namespace may have; None where nobody counts.
    """

    request: ScheduleRequest
    request_id: str
    position: Position
    applied: StateChange
    before: ScheduleState | None
    outcome: Outcome
    memory: ShardCache
    recurring: RecurringChange | None = None
    keeps_until: int | None = None
    most: int | None = None
    stale: tuple[Key, ...] = ()
    name: str = "control"

    @property
    def about(self) -> str:
        return keys.schedule_ref(self.request.namespace, self.request.name)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        applied, before = self.applied, self.before
        state = applied.state
        counted = count_after(unit, self.most, before, state)
        if isinstance(counted, Problem):
            # Others have made theirs since this was decided.
            self._answer(unit, now, StateChange(ReceiptStatus.REJECTED, errors=(counted,)))
            return
        if state is None:
            self._answer(unit, now, applied)
            return
        key = state.key(unit.shard)
        unit.item(key)
        if applied.definition is not None:
            unit.put_new(applied.definition, applied.definition.key(unit.shard))
        if state.next_nominal_is_bound and unit.writes_version < BOUNDS:
            spec = spec_of(unit, state.namespace, state.name, state.version)
            assert spec is not None
            assert isinstance(spec.trigger, TimeTrigger)
            state = as_all_read_it(unit, state, spec.trigger)
        ref = keys.schedule_ref(state.namespace, state.name)
        move_row(unit, nominal_row(before), nominal_row(state))
        move_row(unit, tick_row(before), tick_row(state))
        self._move_until(unit, state, ref)
        unit.put(state, key)
        if state.status == "deleted" and before is not None and before.status != "deleted":
            gone = gone_row(before, self.position.append_time or None, now)
            unit.put_new(gone, gone.key(unit.shard))
        if self.memory.has_waiting(ref):
            unit.after(lambda: self.memory.hold(ref, now))  # Other constraints may hold for what waits.
        withdrawn = 0
        if before is None or before.generation != state.generation:
            withdrawn = self._end_generation(unit, before, state, now)
        self._answer(unit, now, applied, withdrawn)
        if counted is not None:
            # Last: what tells whether the transaction was carried out must be an item that nobody else writes.
            unit.put(counted, keys.schedule_count(state.namespace))

    def _end_generation(self, unit: UnitOfWork, before: ScheduleState | None, state: ScheduleState, now: int) -> int:
        """Returns how many occurrences of a recurring message end with it unsent."""
        closed, withdrawn = (
            (None, 0) if self.recurring is None else self.recurring.write(unit, state, self.applied.first)
        )
        if before is not None:
            asked_at = self.position.append_time
            past = PastGeneration.of(
                before,
                asked_at,
                now,
                fired=fires(before),
                interval=closed,
                suspended_since=unit.controls.suspended_since(before.namespace),
            )
            unit.set_row(past, past.key(unit.shard))
        return withdrawn

    def _move_until(self, unit: UnitOfWork, state: ScheduleState, ref: str) -> None:
        former = None if self.before is None else self.before.until
        if former is not None and former not in (state.until, self.keeps_until):
            unit.forget_row(keys.timer(unit.shard, former, keys.RESUME_TIMER, ref))
        if state.until is not None:
            row = TimerRow(at=state.until, kind=keys.RESUME_TIMER, ref=ref)
            unit.set_row(row, row.key(unit.shard))

    def _answer(self, unit: UnitOfWork, now: int, applied: StateChange, withdrawn: int = 0) -> None:
        state = applied.state or self.before
        receipt = Receipt.model_construct(
            request_id=self.request_id,
            status=applied.status,
            namespace=self.request.namespace,
            name=self.request.name,
            version=None if state is None else state.version or None,
            next=applied.next,
            discarded=Discarded.model_construct(messages=withdrawn) if withdrawn else None,
            backlog=applied.backlog,
            errors=applied.errors,
            at=now,
        )
        answer(unit, self.outcome, receipt, now, settled=not applied.has_pages)


def version_conflict(request: ScheduleRequest, before: ScheduleState | None) -> Problem | None:
    """`expected_version`: None is no check, 0 means that it must not exist (SEMANTICS 18), `any` that it must."""
    found = 0 if before is None or before.status == "deleted" else before.version
    if request.expected_version in (None, found) or (request.expected_version == "any" and found):
        return None
    is_now = f"is at version {found}" if found else "does not exist"
    problem = f"is {request.expected_version}, the schedule {is_now}"
    return Problem(field="expected_version", problem=problem, hint="")


# -- what each request makes of a state ----------------------------------------------------------------------------------


def next_state(
    before: ScheduleState | None, position: Position, namespace: str, name: str, now: int, **changes: object
) -> ScheduleState:
    """Returns the state after a request; a name that is new or was deleted begins a new incarnation."""
    base = before
    if base is None or base.status == "deleted":
        base = ScheduleState(
            namespace=namespace,
            name=name,
            status="active",
            incarnation=incarnation_of(position),
            version=0 if before is None else before.version,
            generation=0 if before is None else before.generation,
            position=position.text(),
            # Of the life before: the end of a suspension is carried out once for each instant, whichever life it was in.
            pauses=() if before is None else before.pauses,
        )
    return replace(base, position=position.text(), changed_at=now, **changes)  # type: ignore[arg-type]  # fields by name


def is_unchanged(before: ScheduleState | None, spec: ScheduleSpec) -> bool:
    """Whether the schedule is there as the spec has it, and waits for nothing that is gone: applying it changes nothing."""
    return (
        before is not None and before.status != "deleted" and before.spec_hash == spec.spec_hash() and not before.gone
    )


def status_after(before: ScheduleState | None, spec: ScheduleSpec) -> str:
    """Returns the status after an apply that changes something, which only a new schedule's definition decides."""
    if before is None or before.status == "deleted":
        return "suspended" if spec.suspended else "active"
    return before.status


def applied_spec(
    before: ScheduleState | None,
    spec: ScheduleSpec,
    position: Position,
    actor: str | None,
    reason: str | None,
    now: int,
    on_update: OnUpdate = "keep_due",
) -> StateChange:
    """`schedule.apply`: every change restarts unless it says otherwise (SEMANTICS 12.2), and by default keeps what is due (12.4); an identical
    spec changes nothing (12.1), unless the trigger has lost schedules that it waited for: then it listens to them anew.
    """
    if before is not None and is_unchanged(before, spec):
        return untouched(ReceiptStatus.UNCHANGED, before, position)
    fresh = before is None or before.status == "deleted"
    state = next_state(before, position, spec.namespace, spec.name, now)
    if fresh and spec.suspended:
        state = replace(state, status="suspended", suspended_at=now)
    if spec.sends_messages and state.status == "suspended":
        # Messages know no other mode: held as a program's it would send what falls due.
        state = replace(state, mode="drop")
    if fresh or before is None or on_update == "restart":
        state = _restarted(state, spec, now)
    elif on_update in KEEPS_DUE:
        state = _restarted(state, spec, now)
        if not fires(state):
            # A resume begins a new generation, and these jobs go on.
            state = replace(state, kept_from=state.generation)
        if isinstance(spec.trigger, TimeTrigger) and not spec.sends_messages:
            # A resume's cut that is not through is about the jobs that stay.
            state = replace(state, shedding=before.shedding, cut_through=before.cut_through)
    elif on_update == "carry":
        # Same generation: its index rows are those of the same trigger, so no event is lost or counted twice on the way.
        state = replace(state, carried=carried_on(before))
    else:
        state = replace(
            _restarted(state, spec, now),
            kept_from=oldest_kept_generation(before),
            carried=before.carried,
            shedding=before.shedding,
            cut_through=before.cut_through,
        )
    state = replace(
        state,
        version=state.version + 1,
        spec_hash=spec.spec_hash(),
        actor=actor,
        reason=reason,
        expires_at=None,
        gone=(),
    )
    definition = Definition(
        namespace=spec.namespace, name=spec.name, version=state.version, spec=spec.canonical_json(), created_at=now
    )
    has_pages = before is not None and (fresh or on_update != "carry")
    # A past `at` that is too old is walked over, and told in the ledger: it does not come.
    coming = tuple(each for each in next_instants(spec, state, now) if not is_too_old(spec, each, now))
    state = misfires.after_apply(state, spec, before)
    if before is None or before.generation != state.generation:
        coming = misfires.left_behind(state, spec, coming)
    return StateChange(ReceiptStatus.ACCEPTED, state, definition, has_pages, next=coming)


def _restarted(state: ScheduleState, spec: ScheduleSpec, now: int) -> ScheduleState:
    """Returns the state that counts from now on, and keeps nothing of what was: nor is there a backlog to wait for the cut of."""
    ref = keys.schedule_ref(spec.namespace, spec.name)
    restarted = replace(
        state,
        generation=state.generation + 1,
        activated_at=now,
        fires=0,
        ticked=(),
        kept_from=None,
        carried=(),
        shedding=None,
        cut_through=None,
    )
    if not fires(state):
        return restarted.at_next(NEVER).at_tick(NEVER)
    following = first_nominal(spec, ref, restarted, now)
    return restarted.at_next(following).at_tick(first_tick(spec, restarted, now))


def outside_of_state(applied: StateChange, request: ScheduleRequest, definition: Definition | None) -> StateChange:
    """Returns the same, with the next instant of a schedule that sends messages taken out of the state.

    Nothing is written when such a schedule fires, so the state cannot say what comes next.
    """
    spec = request.spec if isinstance(request, ScheduleApply) else None
    if spec is None and definition is not None:
        spec = parsed(definition.spec)
    if spec is None or not spec.sends_messages or applied.state is None:
        return applied
    return replace(applied, state=applied.state.at_next(NEVER), first=applied.state.next_nominal)


def deleted(before: ScheduleState | None, request: ScheduleRequest, position: Position, now: int) -> StateChange:
    """`schedule.delete`: a versioned tombstone, also for a name that was never seen (an older create may still come)."""
    never_existed = before is None or before.expires_at is not None
    expires_at = expiry(now, TOMBSTONE_DAYS) if never_existed else None
    if before is not None and before.status == "deleted":
        # Nothing of it starts behind this answer either: what the delete before it could not end yet is in its way.
        gone = untouched(ReceiptStatus.NOT_FOUND, replace(before, expires_at=expires_at), position)
        return replace(gone, has_pages=True)
    state = next_state(before, position, request.namespace, request.name, now)
    state = replace(
        state.at_next(NEVER).at_tick(NEVER),
        status="deleted",
        until=None,
        stopped_by=None,
        stopped_for=None,
        kept_from=None,
        shedding=None,
        cut_through=None,
        # What never was there has no version: a create after it is the first one.
        version=state.version if before is None else state.version + 1,
        generation=state.generation + 1,
        spec_hash="",
        actor=request.actor,
        reason=request.reason,
        expires_at=expires_at,
    )
    return StateChange(
        ReceiptStatus.NOT_FOUND if before is None else ReceiptStatus.ACCEPTED, state, None, has_pages=True
    )


def untouched(status: ReceiptStatus, before: ScheduleState, position: Position) -> StateChange:
    """Nothing changes but the position: an older request that arrives later is superseded all the same."""
    return StateChange(status, replace(before, position=position.text()))


def first_nominal(spec: ScheduleSpec, ref: str, state: ScheduleState, now: int, *, resumed: bool = False) -> Next:
    """Returns the first instant that counts from now on, and was not made before; or how far one decision has searched for it.

    It could be made again otherwise: an `at` that has passed counts at each update, and the clock of a new owner may
    stand before an instant that its predecessor has made.
    """
    if isinstance(spec.trigger, EventTrigger):
        every = spec.trigger.at_least_every
        # By the clock of an owner before this one the last job may have been made later: a reminder before that counts as dealt with.
        return NEVER if every is None else Next(max(now, state.made_at) + every)
    if spec.trigger.fires_left(state.fires) == 0:
        return NEVER
    # Of what lay in the suspended span nothing is made up for, an `at` included (SEMANTICS 10).
    begin = now if resumed else spec.trigger.counts_from(now)
    return spec.trigger.seek(max(begin - 1, state.fired_through), ref, Search.of_a_decision())


def coming_instants(spec: ScheduleSpec, state: ScheduleState, now: int) -> tuple[int, ...]:
    """Returns up to three instants that are still to come.

    The state of a schedule that sends messages does not name the next one: nothing is written when it fires.
    """
    if not spec.sends_messages or state.status != "active" or not isinstance(spec.trigger, TimeTrigger):
        return next_instants(spec, state, now)
    ref = keys.schedule_ref(state.namespace, state.name)
    following = spec.trigger.seek(max(now, state.activated_at) - 1, ref, Search.of_a_decision())
    return next_instants(spec, state.at_next(following), now)


def first_future_instant(trigger: TimeTrigger, ref: str, state: ScheduleState, now: int, search: Search) -> Next:
    """Returns the first instant that does not lie behind us: the state's next one does while a wide suspend goes on.

    What lies in such a span is passed by once its end is known. A past `at` comes with its activation.
    """
    nominal = state.following.found
    if nominal is None or max(nominal, state.activated_at) >= now:
        return state.following
    return trigger.seek(now - 1, ref, search)


def next_instants(spec: ScheduleSpec, state: ScheduleState, now: int) -> tuple[int, ...]:
    """Returns up to three instants that are still to come, as the receipt shows them: those that are found soon."""
    instants: list[int] = []
    trigger = spec.trigger
    if not isinstance(trigger, TimeTrigger):
        return ()
    search = Search.of_a_decision()
    ref = keys.schedule_ref(state.namespace, state.name)
    left = trigger.fires_left(state.fires)
    shown = NEXT_SHOWN if left is None else min(left, NEXT_SHOWN)
    following = first_future_instant(trigger, ref, state, now, search)
    while (nominal := following.found) is not None and len(instants) < shown:
        instants.append(nominal)
        following = trigger.seek(nominal, ref, search) if len(instants) < shown else NEVER
    return tuple(instants)
