"""Applies one request from the inbox: checks for a repeat, decides, writes and answers.

The inbox loop of a shard runs it, one request per schedule at a time. It writes the schedule's state, its definition, the pages that follow
and the stored receipt. A crash replays the request; the stored receipt then shows which steps are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tidegate_core.commands import schedule_commands
from tidegate_core.commands.apply_checks import counted_problems, trigger_stays, update_problems
from tidegate_core.commands.end_pending import ENDED_PER_PAGE
from tidegate_core.commands.fire_route import ScheduleChange, change_of, route_of
from tidegate_core.commands.pending_pages import LEAVES_INDEX, page_of
from tidegate_core.commands.request_answer import Outcome
from tidegate_core.commands.run_commands import CancelJob, CancelRun, ReleaseRun, TriggerNow
from tidegate_core.commands.schedule_commands import MoveState, StateChange
from tidegate_core.commands.suspend_resume import resumed, suspended
from tidegate_core.engine.actor_context import Fenced
from tidegate_core.engine.decision import Decision, Deferred, Procedure
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter, WriterClosed
from tidegate_core.firing import misfires
from tidegate_core.firing.fire import FireSchedule
from tidegate_core.language.definitions.quotas import quota_of
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
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

WITHOUT_EFFECT = frozenset({ReceiptStatus.REJECTED, ReceiptStatus.CONFLICT, ReceiptStatus.SUPERSEDED})
REPEATS_APART_MS = 1
"""Pause after a repeat that memory answers. The answer takes a tenth of that. Without a pause, thousands of repeats would keep the driver from
its other work."""


def request_id_of(request_id: str | None, origin: str) -> str:
    """Returns the id under which the receipt is stored; the position names a request without an id."""
    return request_id if request_id is not None else f"@{origin}"


@dataclass(frozen=True, slots=True)
class ApplyRequest(Procedure):
    """Applies one inbox row of kind `Q` in the shard writer, then announces its receipt.

    Attributes:
        row: Inbox row of the request.
        memory: Cache of the shard's jobs and runs.
        recurring: Recurring messages of the shard.
        announce: Callback that receives the row and its receipt.
        arrived: Number of the last reading of topics' end offsets that had begun when the row was found (`readings`).
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

    def run(self, writer: ShardWriter) -> Operation[None]:
        self.announce(self.row, (yield from self._receipt_once_told(writer)))

    def _receipt_once_told(self, writer: ShardWriter) -> Operation[str]:
        """Applies the request. While topics do not answer, the other decisions of the shard go on.

        Then the request starts again and uses nothing that it read from the store before, as a new owner would. It keeps the end offsets that
        topics reported, and counts the other topics as silent. So the loop ends.
        """
        while True:
            try:
                return (yield from self._receipt(writer))
            except TopicsUnanswered as unanswered:
                yield from find_out(writer.host, self._topics_to_ask(writer, unanswered.topics), writer.yield_turn)

    @property
    def _asked_at(self) -> int | None:
        """Instant at which a resume was requested; None: the append time of its record."""
        return None

    def _topics_to_ask(self, writer: ShardWriter, unanswered: Sequence[str]) -> Sequence[str]:
        """Returns the topics whose end offsets are read while the request waits for topics that did not answer at once."""
        return unanswered

    def _authorize(self, writer: ShardWriter, request: Request) -> None:
        """Refuses a user's request whose topic does not serve its namespace.

        Ingest has checked a record already. A row that the API wrote is checked only here.

        Raises:
            RefusedRecord: The topic does not serve the request's namespace.
        """
        authorize_request(request, writer.host.holding.namespaces.requests, writer.host.holding.requests.name)

    def _receipt(self, writer: ShardWriter) -> Operation[str]:
        try:
            request = parse_request(self.row.body.encode())
            self._authorize(writer, request)
        except RefusedRecord as refused:
            # Ingest accepted the request. So only the grammar of a newer node leads here, in a rolling downgrade.
            return self._refusal(refused, writer.host.now).to_json().decode()
        request_id = request_id_of(request.id, self.row.origin)
        key = keys.receipt(writer.shard, request.namespace, request_id)
        known = _settled_answer_in_memory(writer, key)
        if known is not None:
            if any(writer.queued(ApplyRequest)):
                yield from writer.host.sleep(REPEATS_APART_MS)
            if not known.answers(request):
                return used_otherwise(request, request_id, writer.host.now).to_json().decode()
            return known.body
        try:
            return (yield from self._complete(writer, request, request_id, key))
        except Exception:
            writer.view.forget([key])  # The stored answer serves no repeat until all steps are done.
            raise

    def _complete(self, writer: ShardWriter, request: Request, request_id: str, key: Key) -> Operation[str]:
        """Returns the receipt once every step of the request is done."""
        item = yield from _read(writer, key)
        stored = None if item is None else from_item(StoredReceipt, item)
        if stored is not None and not stored.answers(request):
            writer.view.forget([key])  # This request cannot tell whether the answered request has steps left.
            return used_otherwise(request, request_id, writer.host.now).to_json().decode()
        if stored is not None and stored.settled:
            # An older release wrote this answer: it answered before the last step.
            yield from self._drop_old_subscriptions(writer, request)
            if Receipt.model_validate_json(stored.body).status in WITHOUT_EFFECT:
                yield from self._drop_new_subscriptions(writer, request)
            return stored.body
        # This release wrote an unsettled answer before a crash: only the pages are left.
        so_far = None if stored is None else Receipt.model_validate_json(stored.body)
        outcome = Outcome(subject_of(request), so_far, definition=definition_of(request))
        yield from self._apply(writer, request, request_id, outcome)
        assert outcome.receipt is not None
        return outcome.receipt.to_json().decode()

    # -- requests that cannot be applied -------------------------------------------------------------------------------

    def receipt_key(self, shard: int) -> Key:
        """Returns the key of the receipt, which exists as soon as a first step is done."""
        request = parse_request(self.row.body.encode())
        return keys.receipt(shard, request.namespace, request_id_of(request.id, self.row.origin))

    def refusal_for(self, error: Exception, now: int) -> Receipt:
        """Returns the receipt of a request that failed before its first write."""
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
            # Names of the request: the row's own names may stand for all requests of a kind.
            namespace=refused.namespace,
            name=refused.name,
            errors=refused.problems,
            at=now,
        )

    def _apply(self, writer: ShardWriter, request: Request, request_id: str, outcome: Outcome) -> Operation[None]:
        position = Position.parse(self.row.origin)
        match request:
            case ScheduleTrigger():
                yield from writer.decide_alone(TriggerNow(request, request_id, position, outcome, self.memory))
            case RunCancel():
                cancel_run = CancelRun(
                    writer.shard, request.run_id, request_id, request.namespace, outcome, self.memory
                )
                yield from writer.decide_alone(cancel_run)
            case RunRelease():
                yield from writer.decide_alone(ReleaseRun(writer.shard, request, request_id, outcome, self.memory))
            case JobCancel():
                cancel_job = CancelJob(request.job_id, request_id, request.namespace, outcome)
                yield from writer.decide_alone(cancel_job)
            case ScheduleApply() | ScheduleDelete() | ScheduleSuspend() | ScheduleResume():
                yield from self._apply_to_schedule(writer, request, request_id, position, outcome)
            case _:
                raise AssertionError(f"{request.type} is no request on schedules, jobs or runs")

    # -- requests that move a schedule's state ------------------------------------------------------------------------

    def _apply_to_schedule(
        self, writer: ShardWriter, request: ScheduleRequest, request_id: str, position: Position, outcome: Outcome
    ) -> Operation[None]:
        before = yield from self._state(writer, request)
        definition = yield from self._definition(writer, before)
        if outcome.receipt is None:
            before = yield from self._fire_due_instants(writer, request, before)
            try:
                yield from self._move_schedule(writer, request, request_id, position, before, definition, outcome)
            except (Fenced, WriterClosed, TopicsUnanswered, Deferred):
                raise
            except Exception:
                yield from self._drop_new_subscriptions(writer, request)
                raise
        assert outcome.receipt is not None
        if outcome.receipt.status in WITHOUT_EFFECT:
            yield from self._drop_new_subscriptions(writer, request)
        if not outcome.settled:
            # An event may follow the answer at once, because the API reads the answer from the store. No old version may count that event.
            # So the subscriptions go before the answer is settled.
            yield from self._drop_old_subscriptions(writer, request)
        most: int | None = None
        changes = outcome.receipt.status is not ReceiptStatus.UNCHANGED
        asked = _with_mode_of_definition(request, definition) if changes else request
        while not outcome.settled:
            state = yield from self._state(writer, request)
            assert state is not None
            so_far = outcome.receipt
            try:
                yield from writer.decide_alone(self._page(asked, state, outcome, most))
            except (Fenced, WriterClosed):
                raise
            except Exception as error:
                if most == 1:
                    raise
                # The page is too large, or one item on it fails. Halves do what can be done, and at last report the bad item alone.
                outcome.receipt, outcome.settled = so_far, False
                most = (most or ENDED_PER_PAGE) // 2 or 1
                writer.host.note("page_halved", shard=writer.shard, about=self.about, most=most, error=repr(error))

    def _move_schedule(
        self,
        writer: ShardWriter,
        request: ScheduleRequest,
        request_id: str,
        position: Position,
        before: ScheduleState | None,
        definition: Definition | None,
        outcome: Outcome,
    ) -> Operation[None]:
        """Decides and moves the state. The change holds all that lies outside of the state, until that has moved too or the request is refused."""
        specs = _definitions_around(request, definition)
        change = change_of(specs, self.recurring, writer, request.namespace, request.name)
        try:
            yield from change.begin()
            before = change.caught_up(before)
            applied = yield from self._decide(writer, request, position, before, definition, change.since)
            after = next(_definitions_around(request, definition), None)
            if applied.state is not None and after is not None:
                state, first = route_of(after).split_next(applied.state)
                applied = replace(applied, state=state, first=first)
            move = self._move(writer, request, request_id, position, applied, before, outcome, change)
            yield from writer.decide_alone(move)
        finally:
            change.end()

    def _move(
        self,
        writer: ShardWriter,
        request: ScheduleRequest,
        request_id: str,
        position: Position,
        applied: StateChange,
        before: ScheduleState | None,
        outcome: Outcome,
        change: ScheduleChange,
    ) -> MoveState:
        most = quota_of(writer.host.holding.quotas, request.namespace).schedules_max
        stale = () if most is None else (keys.schedule_count(request.namespace),)
        return MoveState(
            request, request_id, position, applied, before, outcome, self.memory, change, most=most, stale=stale
        )

    def _page(self, request: ScheduleRequest, state: ScheduleState, outcome: Outcome, most: int | None) -> Decision:
        return page_of(request, state, self.memory, outcome, most)

    def _drop_old_subscriptions(self, writer: ShardWriter, request: Request | ScheduleRequest) -> Operation[None]:
        """Removes subscriptions of earlier generations.

        A former owner may have written the new state and died before this step. So a replayed request runs the step again.
        """
        if isinstance(request, ScheduleRequest) and type(request) in LEAVES_INDEX:
            state = yield from self._state(writer, request)
            if state is not None:
                yield from unsubscribe(writer, state)

    def _drop_new_subscriptions(self, writer: ShardWriter, request: Request | ScheduleRequest) -> Operation[None]:
        """Removes the subscriptions that a request wrote which came to nothing."""
        if isinstance(request, ScheduleApply | ScheduleResume):
            yield from unsubscribe_failed(writer, request, (yield from self._state(writer, request)))

    def _fire_due_instants(
        self, writer: ShardWriter, request: ScheduleRequest, before: ScheduleState | None
    ) -> Operation[ScheduleState | None]:
        """Fires the instants that were due before the request arrived. So each of them ends with a ledger row, never silently (I1).

        Instants in an open scope suspension stay, as far as this shard knows the suspension. A resume of the scope that has not reached the
        shard is not answered either, so this request may count as the earlier one. An instant that fails to fire is reported and left: the
        request may be the suspend or the update that fixes the schedule.
        """
        ref = keys.schedule_ref(request.namespace, request.name)
        while before is not None and before.next_nominal is not None and before.has_due(writer.host.now):
            row = TimerRow(at=before.next_nominal, kind=keys.NOMINAL_TIMER, ref=ref)
            try:
                yield from writer.decide_alone(FireSchedule(row, self.memory))
            except (Fenced, WriterClosed):
                raise
            except Exception as error:  # noqa: BLE001 - any failure is reported
                writer.host.failed("fire", ref, error)
                break
            # After an outage there may be thousands of instants. Other schedules fire between two of them.
            yield from writer.yield_turn()
            former, before = before, (yield from self._state(writer, request))
            if before == former:
                break
        return before

    def _decide(
        self,
        writer: ShardWriter,
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
                return (yield from self._decide_apply(writer, request, position, before, definition, now))
            case ScheduleDelete():
                return schedule_commands.deleted(before, request, position, now)
            case ScheduleSuspend():
                return suspended(before, definition, request, position, now)
            case ScheduleResume():
                jobs = self.memory.jobs_of(keys.schedule_ref(request.namespace, request.name))
                waiting = [job for job in jobs if job.state == PENDING_CONSTRAINT]
                applied = resumed(before, definition, request, position, now, waiting)
                if _begins_generation(applied, before) and applied.state is not None and definition is not None:
                    yield from subscribe(writer, applied.state, parsed(definition.spec), self.arrived, self._asked_at)
                return applied
            case _:
                raise AssertionError(f"{request!r} does not move a schedule's state")

    def _decide_apply(
        self,
        writer: ShardWriter,
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
        holding = writer.host.holding
        former = None if definition is None else parsed(definition.spec)
        # The instants are searched only after the checks found, within their bound, that there is one.
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
        for field, program in spec.target_rules.programs.items():
            conf = program.conf if isinstance(program, PysparkProgram) else {}
            inspected = yield Inspect(program.type, program.file, conf)
            assert isinstance(inspected, Inspected)
            if inspected.problem is not None:
                hint = "give the path of a file that the nodes can read"
                errors += (Problem(field=f"{field}.file", problem=inspected.problem, hint=hint),)
            if inspected.refused is not None:
                hint = "its runs would all be rejected: change conf, or the node"
                errors += (Problem(field=field, problem=inspected.refused, hint=hint),)
        errors += yield from counted_problems(writer, spec, before, quota)
        if errors:
            return StateChange(ReceiptStatus.REJECTED, errors=errors)
        applied = schedule_commands.applied_spec(before, spec, position, request.actor, request.reason, now, how)
        if applied.state is not None and fires(applied.state) and _begins_generation(applied, before):
            yield from subscribe(writer, applied.state, spec, self.arrived)
        return applied

    # -- reading ------------------------------------------------------------------------------------------------------

    def _state(self, writer: ShardWriter, request: ScheduleRequest) -> Operation[ScheduleState | None]:
        key = keys.schedule_state(writer.shard, request.namespace, request.name)
        item = yield from _read(writer, key)
        return None if item is None else from_item(ScheduleState, item)

    def _definition(self, writer: ShardWriter, state: ScheduleState | None) -> Operation[Definition | None]:
        if state is None or state.status == "deleted":
            return None
        item = yield from _read(writer, keys.definition(writer.shard, state.namespace, state.name, state.version))
        return None if item is None else from_item(Definition, item)


def _settled_answer_in_memory(writer: ShardWriter, key: Key) -> StoredReceipt | None:
    """Returns a settled answer from memory, without a read.

    After an outage, clients repeat their requests every few seconds. If each repeat cost a read, the shard would answer repeats only, and
    never reach the new requests.
    """
    item = writer.view.item(key) if writer.view.knows(key) else None
    stored = None if item is None else from_item(StoredReceipt, item)
    if stored is None or not stored.settled or stored.expires_at * 1000 <= writer.host.now:
        return None  # Only the store knows whether an expired answer still exists.
    return stored


def _read(writer: ShardWriter, key: Key) -> Operation[Item | None]:
    yield from writer.fetch(NotAtHand(keys=[key]))
    return writer.view.item(key)


def _with_mode_of_definition(request: ScheduleRequest, definition: Definition | None) -> ScheduleRequest:
    """Returns a suspend that names no mode with the mode of the definition.

    Before its pages are done, another suspend may give the state another mode. A suspend that finds the schedule suspended changes nothing
    and goes by the mode of the state.
    """
    if isinstance(request, ScheduleSuspend) and request.mode is None and definition is not None:
        return request.model_copy(update={"mode": parsed(definition.spec).suspend_mode})
    return request


def _definitions_around(request: ScheduleRequest, definition: Definition | None) -> Iterator[ScheduleSpec]:
    """Yields the definition that the request brings, and the present one."""
    if isinstance(request, ScheduleApply):
        yield request.spec
    if definition is not None:
        yield parsed(definition.spec)


def _begins_generation(applied: StateChange, before: ScheduleState | None) -> bool:
    """Whether the schedule needs new subscriptions, because the request began a new generation."""
    state = applied.state
    return (
        applied.status is ReceiptStatus.ACCEPTED
        and state is not None
        and (before is None or before.generation != state.generation)
    )
