"""The procedure that applies one request from the inbox: find out what is done already, decide, write, answer (DESIGN 7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate_core.commands import schedule_commands
from tidegate_core.commands.end_pending import ENDED_PER_PAGE
from tidegate_core.commands.pending_pages import LEAVES_INDEX, page_of
from tidegate_core.commands.quota_enforcement import counted_problems
from tidegate_core.commands.request_answer import Outcome
from tidegate_core.commands.run_commands import CancelJob, CancelRun, ReleaseRun, TriggerNow
from tidegate_core.commands.schedule_commands import MoveState, StateChange
from tidegate_core.commands.suspend_resume import resumed, suspended
from tidegate_core.commands.update_rules import trigger_stays, update_problems
from tidegate_core.engine.actor_context import Fenced
from tidegate_core.engine.decision import Decision, Deferred, Procedure
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter, WriterClosed
from tidegate_core.firing import misfires
from tidegate_core.firing.fire import FireSchedule
from tidegate_core.language.definitions.quotas import quota_of
from tidegate_core.language.definitions.schedule_validation import check_schedule
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.record_authorization import authorize_request
from tidegate_core.language.requests.requests import (
    JobCancel,
    Request,
    RunCancel,
    RunRelease,
    ScheduleApply,
    ScheduleDelete,
    ScheduleRequest,
    ScheduleResume,
    ScheduleSuspend,
    ScheduleTrigger,
)
from tidegate_core.language.targets.programs import PysparkProgram
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import Problem, RefusedRecord
from tidegate_core.messages.recurring.recurring_change import RecurringChange
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Inspect, Inspected
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.receipt import StoredReceipt, definition_of, subject_of, used_otherwise
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.events.end_offsets import TopicsUnanswered, find_out
from tidegate_core.shard.events.subscriptions import subscribe, unsubscribe, unsubscribe_failed
from tidegate_core.shard.schedule_state import fires, parsed
from tidegate_core.shard.shard_cache import PENDING_CONSTRAINT, ShardCache
from tidegate_core.writes.unit_of_work import NotAtHand

CAME_TO_NOTHING = frozenset({ReceiptStatus.REJECTED, ReceiptStatus.CONFLICT, ReceiptStatus.SUPERSEDED})
REPEATS_APART_MS = 1
"""Of a backlog of thousands each one takes a tenth of that, and asks for nothing: the driver has its turns meanwhile."""


def request_id_of(request_id: str | None, origin: str) -> str:
    """Returns the id under which the receipt lies; a request without one is known by its position."""
    return request_id if request_id is not None else f"@{origin}"


@dataclass(frozen=True, slots=True)
class ApplyRequest(Procedure):
    """Applies one inbox row of kind `Q`, in the lane, then has its receipt announced.

    Attributes:
        row: What is applied.
        memory: Of the run plane.
        recurring: Of schedules that send messages.
        announce: Is told the row and its receipt.
        arrived: Number of the last reading of topics' ends that had begun when the row was found (`readings`).
    """

    row: InboxRow
    memory: ShardCache
    recurring: RecurringQueue
    announce: Callable[[InboxRow, str], None]
    arrived: int
    name: str = "request"

    @property
    def about(self) -> str:
        return f"{keys.schedule_ref(self.row.namespace, self.row.name)} {self.row.origin}"

    @property
    def ordering_key(self) -> str | None:
        return keys.schedule_ref(self.row.namespace, self.row.name)

    def run(self, lane: ShardWriter) -> Operation[None]:
        self.announce(self.row, (yield from self._receipt_once_told(lane)))

    def _receipt_once_told(self, lane: ShardWriter) -> Operation[str]:
        """Applies it; where topics do not answer at once the lane's decisions have their turn until it is known which do.

        Nothing that was read of the store before that is used after it: it begins anew, as a successor would. What the topics told
        serves it, and those that told nothing are silent for it: so there is an end to it.
        """
        while True:
            try:
                return (yield from self._receipt(lane))
            except TopicsUnanswered as untold:
                yield from find_out(lane.host, self._topics_to_ask(lane, untold.topics), lane.yield_turn)

    @property
    def _asked_at(self) -> int | None:
        """When a resume was asked for; None: as its record was appended."""
        return None

    def _topics_to_ask(self, lane: ShardWriter, untold: Sequence[str]) -> Sequence[str]:
        """Returns the topics that are asked while the lane waits for some that have not answered at once."""
        return untold

    def _authorize(self, lane: ShardWriter, request: Request) -> None:
        """Refuses a user's request that its topic is not for. The ingest has asked the same of a record, and nobody of a row that the API wrote.

        Raises:
            RefusedRecord: The topic is not for the request's namespace.
        """
        authorize_request(request, lane.host.holding.namespaces.requests, lane.host.holding.requests.name)

    def _receipt(self, lane: ShardWriter) -> Operation[str]:
        try:
            request = parse_request(self.row.body.encode())
            self._authorize(lane, request)
        except RefusedRecord as refused:
            # Else ingest accepted it, and only a newer node's grammar can lead here (rolling downgrade).
            return self._refusal(refused, lane.host.now).to_json().decode()
        request_id = request_id_of(request.id, self.row.origin)
        key = keys.receipt(lane.shard, request.namespace, request_id)
        known = _answer_at_hand(lane, key)
        if known is not None:
            if any(lane.queued(ApplyRequest)):
                yield from lane.host.sleep(REPEATS_APART_MS)
            if not known.answers(request):
                return used_otherwise(request, request_id, lane.host.now).to_json().decode()
            return known.body
        try:
            return (yield from self._gone_through(lane, request, request_id, key))
        except Exception:
            lane.view.forget([key])  # What is stored answers no repeat before all that is owed is done.
            raise

    def _gone_through(self, lane: ShardWriter, request: Request, request_id: str, key: Key) -> Operation[str]:
        """Returns its receipt, once nothing is left to be done for it."""
        item = yield from _read(lane, key)
        stored = None if item is None else from_item(StoredReceipt, item)
        if stored is not None and not stored.answers(request):
            lane.view.forget([key])  # Whether anything is owed for what it answers is not known by this one.
            return used_otherwise(request, request_id, lane.host.now).to_json().decode()
        if stored is not None and stored.settled:
            # An older release's: it answered first.
            yield from self._leave_index(lane, request)
            if Receipt.model_validate_json(stored.body).status in CAME_TO_NOTHING:
                yield from self._hear_nothing_by(lane, request)
            return stored.body
        # An answer that is not settled is our own, from before a crash: only what is pending is left to be ended.
        so_far = None if stored is None else Receipt.model_validate_json(stored.body)
        outcome = Outcome(subject_of(request), so_far, definition=definition_of(request))
        yield from self._apply(lane, request, request_id, outcome)
        assert outcome.receipt is not None
        return outcome.receipt.to_json().decode()

    # -- when it cannot be applied ------------------------------------------------------------------------------------

    def receipt_key(self, shard: int) -> Key:
        """Returns where its answer lies once something of it is done."""
        request = parse_request(self.row.body.encode())
        return keys.receipt(shard, request.namespace, request_id_of(request.id, self.row.origin))

    def refusal_for(self, error: Exception, now: int) -> Receipt:
        """Returns the receipt of a request whose application failed, before anything of it was done."""
        request = parse_request(self.row.body.encode())
        problem = f"could not be applied: internal error {type(error).__name__}"
        hint = "the node's log says more, under decision_failed"
        refused = RefusedRecord(
            [Problem("", problem, hint)],
            request_id=request.id,
            namespace=request.namespace,
            name=getattr(request, "name", None),
        )
        return self._refusal(refused, now)

    def _refusal(self, refused: RefusedRecord, now: int) -> Receipt:
        return Receipt.model_construct(
            request_id=request_id_of(refused.request_id, self.row.origin),
            status=ReceiptStatus.REJECTED,
            # As the request names them: its row may lie under words that stand for all of its kind.
            namespace=refused.namespace,
            name=refused.name,
            errors=refused.problems,
            at=now,
        )

    def _apply(self, lane: ShardWriter, request: Request, request_id: str, outcome: Outcome) -> Operation[None]:
        position = Position.parse(self.row.origin)
        match request:
            case ScheduleTrigger():
                yield from lane.decide_alone(TriggerNow(request, request_id, position, outcome, self.memory))
            case RunCancel():
                cancel_run = CancelRun(lane.shard, request.run_id, request_id, request.namespace, outcome, self.memory)
                yield from lane.decide_alone(cancel_run)
            case RunRelease():
                yield from lane.decide_alone(ReleaseRun(lane.shard, request, request_id, outcome, self.memory))
            case JobCancel():
                cancel_job = CancelJob(request.job_id, request_id, request.namespace, outcome)
                yield from lane.decide_alone(cancel_job)
            case ScheduleApply() | ScheduleDelete() | ScheduleSuspend() | ScheduleResume():
                yield from self._apply_to_schedule(lane, request, request_id, position, outcome)
            case _:
                raise AssertionError(f"{request.type} is no request of the run plane")

    # -- requests that move a schedule's state ------------------------------------------------------------------------

    def _apply_to_schedule(
        self, lane: ShardWriter, request: ScheduleRequest, request_id: str, position: Position, outcome: Outcome
    ) -> Operation[None]:
        before = yield from self._state(lane, request)
        definition = yield from self._definition(lane, before)
        if outcome.receipt is None:
            before = yield from self._make_due(lane, request, before)
            try:
                if _sends_messages(request, definition):
                    yield from self._move_recurring(lane, request, request_id, position, before, definition, outcome)
                else:
                    applied = yield from self._decide(lane, request, position, before, definition, lane.host.now)
                    move = self._move(lane, request, request_id, position, applied, before, outcome)
                    yield from lane.decide_alone(move)
            except (Fenced, WriterClosed, TopicsUnanswered, Deferred):
                raise
            except Exception:
                yield from self._hear_nothing_by(lane, request)
                raise
        assert outcome.receipt is not None
        if outcome.receipt.status in CAME_TO_NOTHING:
            yield from self._hear_nothing_by(lane, request)
        if not outcome.settled:
            # Before the answer, which the API reads from the store: an event that comes after it must find a version by which nobody counts it.
            yield from self._leave_index(lane, request)
        most: int | None = None
        changes = outcome.receipt.status is not ReceiptStatus.UNCHANGED
        asked = _with_its_mode(request, definition) if changes else request
        while not outcome.settled:
            state = yield from self._state(lane, request)
            assert state is not None
            so_far = outcome.receipt
            try:
                yield from lane.decide_alone(self._page(asked, state, outcome, most))
            except (Fenced, WriterClosed):
                raise
            except Exception as error:
                if most == 1:
                    raise
                # Too large, or one thing on it is to blame: what can be done of it is done, that one is told of alone.
                outcome.receipt, outcome.settled = so_far, False
                most = (most or ENDED_PER_PAGE) // 2 or 1
                lane.host.note("page_halved", shard=lane.shard, about=self.about, most=most, error=repr(error))

    def _move_recurring(
        self,
        lane: ShardWriter,
        request: ScheduleRequest,
        request_id: str,
        position: Position,
        before: ScheduleState | None,
        definition: Definition | None,
        outcome: Outcome,
    ) -> Operation[None]:
        """Nothing of the schedule is sent from here on, until it has moved or it turns out that it does not."""
        change = RecurringChange(self.recurring, lane, request.namespace, request.name)
        try:
            yield from change.begin()
            before = change.caught_up(before)
            applied = yield from self._decide(lane, request, position, before, definition, change.since)
            applied = schedule_commands.outside_of_state(applied, request, definition)
            move = self._move(lane, request, request_id, position, applied, before, outcome, change)
            yield from lane.decide_alone(move)
        finally:
            change.end()

    def _move(
        self,
        lane: ShardWriter,
        request: ScheduleRequest,
        request_id: str,
        position: Position,
        applied: StateChange,
        before: ScheduleState | None,
        outcome: Outcome,
        change: RecurringChange | None = None,
    ) -> MoveState:
        most = quota_of(lane.host.holding.quotas, request.namespace).schedules_max
        stale = () if most is None else (keys.schedule_count(request.namespace),)
        return MoveState(
            request, request_id, position, applied, before, outcome, self.memory, change, most=most, stale=stale
        )

    def _page(self, request: ScheduleRequest, state: ScheduleState, outcome: Outcome, most: int | None) -> Decision:
        return page_of(request, state, self.memory, outcome, most)

    def _leave_index(self, lane: ShardWriter, request: Request | ScheduleRequest) -> Operation[None]:
        """Also for a request that a predecessor has moved the state by: nobody else would remove what it listened to before."""
        if isinstance(request, ScheduleRequest) and type(request) in LEAVES_INDEX:
            state = yield from self._state(lane, request)
            if state is not None:
                yield from unsubscribe(lane, state)

    def _hear_nothing_by(self, lane: ShardWriter, request: Request | ScheduleRequest) -> Operation[None]:
        """It came to nothing: what was written for it to listen goes."""
        if isinstance(request, ScheduleApply | ScheduleResume):
            yield from unsubscribe_failed(lane, request, (yield from self._state(lane, request)))

    def _make_due(
        self, lane: ShardWriter, request: ScheduleRequest, before: ScheduleState | None
    ) -> Operation[ScheduleState | None]:
        """Makes what was due before the request came: what ends then ends with a ledger row, never silently (I1).

        But for what lies in a wide suspend that goes on, as far as is known here: a resume that is not heard of yet is not answered
        yet, so the request may as well have come before it. What cannot be made is told and left: a schedule that fails as it fires is to be
        stopped, or mended by an update, all the same.
        """
        ref = keys.schedule_ref(request.namespace, request.name)
        while before is not None and before.next_nominal is not None and before.has_due(lane.host.now):
            row = TimerRow(at=before.next_nominal, kind=keys.NOMINAL_TIMER, ref=ref)
            try:
                yield from lane.decide_alone(FireSchedule(row, self.memory))
            except (Fenced, WriterClosed):
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is
                lane.host.failed("fire", ref, error)
                break
            # There may be thousands, after an outage: the schedules behind this one fire meanwhile.
            yield from lane.yield_turn()
            former, before = before, (yield from self._state(lane, request))
            if before == former:
                break
        return before

    def _decide(
        self,
        lane: ShardWriter,
        request: ScheduleRequest,
        position: Position,
        before: ScheduleState | None,
        definition: Definition | None,
        now: int,
    ) -> Operation[StateChange]:
        if before is not None and before.position > position.text():
            return StateChange(ReceiptStatus.SUPERSEDED)
        conflict = schedule_commands.version_conflict(request, before)
        if conflict is not None:
            return StateChange(ReceiptStatus.CONFLICT, errors=(conflict,))
        match request:
            case ScheduleApply():
                return (yield from self._decide_apply(lane, request, position, before, definition, now))
            case ScheduleDelete():
                return schedule_commands.deleted(before, request, position, now)
            case ScheduleSuspend():
                return suspended(before, definition, request, position, now)
            case ScheduleResume():
                jobs = self.memory.jobs_of(keys.schedule_ref(request.namespace, request.name))
                waiting = [job for job in jobs if job.state == PENDING_CONSTRAINT]
                applied = resumed(before, definition, request, position, now, waiting)
                if _begins_anew(applied, before) and applied.state is not None and definition is not None:
                    yield from subscribe(lane, applied.state, parsed(definition.spec), self.arrived, self._asked_at)
                return applied
            case _:
                raise AssertionError(f"{request!r} does not move a schedule's state")

    def _decide_apply(
        self,
        lane: ShardWriter,
        request: ScheduleApply,
        position: Position,
        before: ScheduleState | None,
        definition: Definition | None,
        now: int,
    ) -> Operation[StateChange]:
        spec = request.spec
        how = request.on_update or spec.on_update
        if before is not None and schedule_commands.is_unchanged(before, spec):
            return schedule_commands.untouched(ReceiptStatus.UNCHANGED, before, position)
        holding = lane.host.holding
        former = None if definition is None else parsed(definition.spec)
        # Its instants are searched for only where the checks found, within their bound, that there is one.
        errors = update_problems(how, spec, former, schedule_commands.status_after(before, spec))
        quota = quota_of(holding.quotas, spec.namespace)
        stays = trigger_stays(how, exists=former is not None)
        minimum_ms = holding.minimum_period_ms
        errors += check_schedule(
            spec,
            now=now,
            minimum_period_ms=minimum_ms,
            quota=quota,
            trigger_stays=stays,
            making_up=misfires.made_up_by_apply(spec, before),
        )
        if not spec.sends_messages:
            conf = spec.program.conf if isinstance(spec.program, PysparkProgram) else {}
            inspected = yield Inspect(spec.program.type, spec.program.file, conf)
            assert isinstance(inspected, Inspected)
            if inspected.problem is not None:
                hint = "give the path of a file that the nodes can read"
                errors += (Problem(field="target.program.file", problem=inspected.problem, hint=hint),)
            if inspected.refused is not None:
                hint = "its runs would all be rejected: change conf, or the node"
                errors += (Problem(field="target.program", problem=inspected.refused, hint=hint),)
        errors += yield from counted_problems(lane, spec, before, quota)
        if errors:
            return StateChange(ReceiptStatus.REJECTED, errors=errors)
        applied = schedule_commands.applied_spec(before, spec, position, request.actor, request.reason, now, how)
        if applied.state is not None and fires(applied.state) and _begins_anew(applied, before):
            yield from subscribe(lane, applied.state, spec, self.arrived)
        return applied

    # -- reading ------------------------------------------------------------------------------------------------------

    def _state(self, lane: ShardWriter, request: ScheduleRequest) -> Operation[ScheduleState | None]:
        key = keys.schedule_state(lane.shard, request.namespace, request.name)
        item = yield from _read(lane, key)
        return None if item is None else from_item(ScheduleState, item)

    def _definition(self, lane: ShardWriter, state: ScheduleState | None) -> Operation[Definition | None]:
        if state is None or state.status == "deleted":
            return None
        item = yield from _read(lane, keys.definition(lane.shard, state.namespace, state.name, state.version))
        return None if item is None else from_item(Definition, item)


def _answer_at_hand(lane: ShardWriter, key: Key) -> StoredReceipt | None:
    """Returns the answer that this owner has given, or found, and for which nothing is left to be done; it needs no read.

    Who waits behind an outage asks again every few seconds: reads for each repeat would keep the lane from what nobody has answered
    yet, while the next repeats come.
    """
    item = lane.view.item(key) if lane.view.knows(key) else None
    stored = None if item is None else from_item(StoredReceipt, item)
    if stored is None or not stored.settled or stored.expires_at * 1000 <= lane.host.now:
        return None  # Of an expired one the store says whether it is still there.
    return stored


def _read(lane: ShardWriter, key: Key) -> Operation[Item | None]:
    yield from lane.fetch(NotAtHand(keys=[key]))
    return lane.view.item(key)


def _with_its_mode(request: ScheduleRequest, definition: Definition | None) -> ScheduleRequest:
    """Returns a suspend with the mode that it has by its definition, where it names none: by then another suspend may have given the state another.

    For one that moves the state; that of one which finds it suspended is the state's.
    """
    if isinstance(request, ScheduleSuspend) and request.mode is None and definition is not None:
        return request.model_copy(update={"mode": parsed(definition.spec).suspend_mode})
    return request


def _sends_messages(request: ScheduleRequest, definition: Definition | None) -> bool:
    """Whether messages are what the schedule sends now, or would send after the request."""
    wanted = isinstance(request, ScheduleApply) and request.spec.sends_messages
    return wanted or (definition is not None and parsed(definition.spec).sends_messages)


def _begins_anew(applied: StateChange, before: ScheduleState | None) -> bool:
    """Whether it hears from now on, and not what it has heard all along."""
    state = applied.state
    return (
        applied.status is ReceiptStatus.ACCEPTED
        and state is not None
        and (before is None or before.generation != state.generation)
    )
