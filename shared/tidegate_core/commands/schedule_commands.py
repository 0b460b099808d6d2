"""Apply and delete of a schedule as pure rules, and the transaction that moves a schedule's state for any request.

`apply_request.py` calls the rules and runs the transaction. It writes the state, its timer rows, a definition and the stored receipt.
A request stays in the inbox until its receipt is on `tidegate.receipts`. A crash before that replays it; the stored receipt shows the done steps.

The order within a request keeps guarantee I7. First the state moves, so that nothing older is admitted. Then pending jobs, evidence and runs
before the start gate end page by page (`end_pending.py`). Then the receipt is settled. Suspend and resume are in `suspend_resume.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate_core.commands.apply_checks import count_after
from tidegate_core.commands.fire_route import ScheduleChange, route_of
from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.evidence.tick_cursor import first_tick
from tidegate_core.firing import misfires
from tidegate_core.language.definitions.catch_up_policy import is_too_old
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.requests.receipts import Discarded, Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import ScheduleRequest
from tidegate_core.language.triggers.search import NEVER, Next, Search
from tidegate_core.language.triggers.trigger import EventTrigger, TimeTrigger
from tidegate_core.language.values.derived_ids import incarnation_of
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import Problem
from tidegate_core.language.values.states import KEEPS_DUE, OnUpdate
from tidegate_core.rows import keys
from tidegate_core.rows.receipt import expiry
from tidegate_core.rows.schedule import Definition, PastGeneration, ScheduleState
from tidegate_core.rows.schema_version import BOUNDS
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.events.outbox import gone_row
from tidegate_core.shard.schedule_state import carried_on, fires, oldest_kept_generation, spec_of
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.shard.timer_rows import as_all_read_it, move_row, nominal_row, tick_row
from tidegate_core.writes.unit_of_work import UnitOfWork

TOMBSTONE_DAYS = 30
"""Life of the tombstone of a name that never existed. It is longer than the retention of the requests topic (7 days), so a replayed older
request still finds the tombstone. The tombstone of a schedule that existed stays for ever, so no version is given twice."""
NEXT_SHOWN = 3
"""Coming instants that a receipt lists."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """Result of a request on a schedule: its next state and its answer.

    Attributes:
        state: Next state; None: the state does not change.
        definition: New version, for `schedule.apply`.
        has_pages: Whether pages follow that end, park or release pending work before the answer is settled.
        backlog: Occurrences that a resume makes for the suspended span.
        first: First nominal time of a schedule whose next instant is not in the state (`FireRoute`).
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
        keeps_until: Instant of the timer row of kind `U` that asked for this request. The row stays until all steps are done.
        most: Schedules that the namespace may have; None: no quota.
    """

    request: ScheduleRequest
    request_id: str
    position: Position
    applied: StateChange
    before: ScheduleState | None
    outcome: Outcome
    memory: ShardCache
    change: ScheduleChange
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
            # Other requests have created schedules since this one was decided.
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
            unit.after(lambda: self.memory.hold(ref, now))  # Other constraints may apply to the waiting jobs.
        withdrawn = 0
        if before is None or before.generation != state.generation:
            withdrawn = self._end_generation(unit, before, state, now)
        self._answer(unit, now, applied, withdrawn)
        if counted is not None:
            # The count comes last. The first items show whether a transaction was carried out, and only this owner may write those.
            unit.put(counted, keys.schedule_count(state.namespace))

    def _end_generation(self, unit: UnitOfWork, before: ScheduleState | None, state: ScheduleState, now: int) -> int:
        """Ends the former generation, and returns how many due occurrences of a recurring message are not sent any more."""
        closed, withdrawn = self.change.write(unit, state, self.applied.first)
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
    """Returns why `expected_version` does not fit: None checks nothing, 0 wants no schedule, and `any` wants one."""
    found = 0 if before is None or before.status == "deleted" else before.version
    if request.expected_version in (None, found) or (request.expected_version == "any" and found):
        return None
    is_now = f"is at version {found}" if found else "does not exist"
    problem = f"is {request.expected_version}, the schedule {is_now}"
    return Problem(field="expected_version", problem=problem, hint="")


# -- the next state -------------------------------------------------------------------------------------------------------


def next_state(
    before: ScheduleState | None, position: Position, namespace: str, name: str, now: int, **changes: object
) -> ScheduleState:
    """Returns the state after a request; a new or deleted name begins a new incarnation."""
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
            # Suspensions of the former incarnation stay known: each end of a suspension is carried out once, in whichever incarnation.
            pauses=() if before is None else before.pauses,
        )
    return replace(base, position=position.text(), changed_at=now, **changes)  # type: ignore[arg-type]  # fields by name


def is_unchanged(before: ScheduleState | None, spec: ScheduleSpec) -> bool:
    """Whether an apply changes nothing: the schedule has this definition, and its trigger has lost no upstream schedule."""
    return (
        before is not None and before.status != "deleted" and before.spec_hash == spec.spec_hash() and not before.gone
    )


def status_after(before: ScheduleState | None, spec: ScheduleSpec) -> str:
    """Returns the status after an apply that changes the schedule; the definition decides it only for a new schedule."""
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
    """Returns the result of `schedule.apply`.

    A change begins a new generation, unless `on_update` is `carry`. By default it keeps due jobs. An identical definition changes nothing.
    But if the trigger has lost a deleted upstream schedule, the same definition subscribes to that name again.
    """
    if before is not None and is_unchanged(before, spec):
        return untouched(ReceiptStatus.UNCHANGED, before, position)
    fresh = before is None or before.status == "deleted"
    state = next_state(before, position, spec.namespace, spec.name, now)
    if fresh and spec.suspended:
        state = replace(state, status="suspended", suspended_at=now)
    if state.status == "suspended":
        state = replace(state, mode=spec.target_rules.mode_of_suspended(state.mode))
    if fresh or before is None or on_update == "restart":
        state = _restarted(state, spec, now)
    elif on_update in KEEPS_DUE:
        state = _restarted(state, spec, now)
        if not fires(state):
            # A resume begins another generation, and the kept jobs must go on in it.
            state = replace(state, kept_from=state.generation)
        if isinstance(spec.trigger, TimeTrigger) and spec.target_rules.makes_jobs:
            # The kept jobs still await the unfinished cut of an earlier resume.
            state = replace(state, shedding=before.shedding, cut_through=before.cut_through)
    elif on_update == "carry":
        # The generation and the trigger stay, and so do the subscriptions. So no event is lost or counted twice.
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
    # A past `at` that is too old gets a ledger entry and no job, so the receipt does not list it.
    coming = tuple(each for each in next_instants(spec, state, now) if not is_too_old(spec, each, now))
    state = misfires.after_apply(state, spec, before)
    if before is None or before.generation != state.generation:
        coming = misfires.left_behind(state, spec, coming)
    return StateChange(ReceiptStatus.ACCEPTED, state, definition, has_pages, next=coming)


def _restarted(state: ScheduleState, spec: ScheduleSpec, now: int) -> ScheduleState:
    """Returns the state of a new generation that counts from now on and keeps no pending work; no backlog awaits a cut."""
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


def deleted(before: ScheduleState | None, request: ScheduleRequest, position: Position, now: int) -> StateChange:
    """Returns the result of `schedule.delete`: a versioned tombstone.

    A name that never existed gets a tombstone too, because an older create may still arrive.
    """
    never_existed = before is None or before.expires_at is not None
    expires_at = expiry(now, TOMBSTONE_DAYS) if never_existed else None
    if before is not None and before.status == "deleted":
        # I7 holds for this answer too. So its pages end what the earlier delete has not ended.
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
        # A name that never existed has no version, so a later create is version 1.
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
    """Returns a result that changes only the position, so that an older request that arrives later is superseded."""
    return StateChange(status, replace(before, position=position.text()))


def first_nominal(spec: ScheduleSpec, ref: str, state: ScheduleState, now: int, *, resumed: bool = False) -> Next:
    """Returns the first instant that counts from now on, or the bound up to which one decision has searched.

    The instant is after all that were fired before. Otherwise it could fire twice: a past `at` counts at each update, and a new owner's clock
    may be earlier than the last instant that fired.
    """
    if isinstance(spec.trigger, EventTrigger):
        every = spec.trigger.at_least_every
        # By the clock of a former owner the last job may be later than now. The next reminder is counted from that job.
        return NEVER if every is None else Next(max(now, state.made_at) + every)
    if spec.trigger.fires_left(state.fires) == 0:
        return NEVER
    # Nothing of the suspended span is caught up here, not even an `at`.
    begin = now if resumed else spec.trigger.counts_from(now)
    return spec.trigger.seek(max(begin - 1, state.fired_through), ref, Search.of_a_decision())


def coming_instants(spec: ScheduleSpec, state: ScheduleState, now: int) -> tuple[int, ...]:
    """Returns up to three instants that are still to come, wherever the target keeps the next one."""
    if state.status == "active" and isinstance(spec.trigger, TimeTrigger):
        ref = keys.schedule_ref(state.namespace, state.name)
        state = state.at_next(route_of(spec).following(spec.trigger, ref, state, now))
    return next_instants(spec, state, now)


def first_future_instant(trigger: TimeTrigger, ref: str, state: ScheduleState, now: int, search: Search) -> Next:
    """Returns the first instant from now on.

    During a scope suspension the state's next instant is in the past; it is passed over once the end of the suspension is known. A past `at`
    is due at its activation.
    """
    nominal = state.following.found
    if nominal is None or max(nominal, state.activated_at) >= now:
        return state.following
    return trigger.seek(now - 1, ref, search)


def next_instants(spec: ScheduleSpec, state: ScheduleState, now: int) -> tuple[int, ...]:
    """Returns up to three coming instants for the receipt, as far as one decision finds them."""
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
