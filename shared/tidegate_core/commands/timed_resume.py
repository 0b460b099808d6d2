"""Timed resume: a suspension with an end is resumed when its timer row of kind `U` is due.

The row asks for a normal resume, under the position of the suspend, so that any later request of a user comes after it. The answer is stored, so
that a new owner continues after a crash; the row is deleted last. The timers of a shard start the procedure, and so does a user's request that
finds an end which is due.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate_core.commands.apply_request import ApplyRequest
from tidegate_core.commands.fire_route import ScheduleChange, route_of
from tidegate_core.commands.request_answer import Outcome
from tidegate_core.commands.schedule_commands import MoveState, StateChange
from tidegate_core.engine.actor_context import Fenced
from tidegate_core.engine.decision import Deferred
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter, WriterClosed
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.requests import Request, ScheduleRequest, ScheduleResume
from tidegate_core.language.triggers import TimeTrigger
from tidegate_core.language.values.log_position import FIRST_POSITION, Position
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.rows import keys
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Batch, Delete
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.schedule_state import fires, parsed
from tidegate_core.shard.shard_cache import ShardCache

ACTOR = "tidegate"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeWhenDue(ApplyRequest):
    """Resumes a schedule at the end of its suspension.

    Attributes:
        timer: Timer row of kind `U`.
    """

    timer: TimerRow
    name: str = "until"

    def run(self, writer: ShardWriter) -> Operation[None]:
        yield from self._receipt_once_told(writer)
        key = self.timer.key(writer.shard)
        yield from writer.host.write_for_good(Batch("until", (Delete(key),)))
        self.memory.apply_row(key, None)

    def _authorize(self, writer: ShardWriter, request: Request) -> None:
        """Allows the request: tidegate made it, so the rules for topics of users do not apply."""

    @property
    def _asked_at(self) -> int:
        """Instant of the resume: the end of the suspension. The position is older, and events since then were ignored."""
        return self.timer.at

    def _decide(
        self,
        writer: ShardWriter,
        request: ScheduleRequest,
        position: Position,
        before: ScheduleState | None,
        definition: Definition | None,
        now: int,
    ) -> Operation[StateChange]:
        if before is None or before.status != "suspended" or before.until != self.timer.at:
            return StateChange(ReceiptStatus.UNCHANGED)  # A request has resumed or deleted the schedule since.
        own = Position.parse(before.position)
        now = _suspension_end(before, definition, now)
        # A dataclass with slots is a second class object, which `super` without arguments does not know. So the class is named.
        return (yield from super(ResumeWhenDue, self)._decide(writer, request, own, before, definition, now))

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
        return MoveState(
            request, request_id, position, applied, before, outcome, self.memory, change, keeps_until=self.timer.at
        )


@dataclass(frozen=True, slots=True)
class ApplyAfterTimedResume(ApplyRequest):
    """Applies a user's request; if the end of a suspension is due, the schedule is resumed first.

    Attributes:
        ends: Number of readings of topics' end offsets that had begun when an end was found, by that end. Only later readings serve the resume.
            A request that starts again finds its number here.
    """

    ends: dict[int, int] = field(default_factory=dict, compare=False)

    def _apply(self, writer: ShardWriter, request: Request, request_id: str, outcome: Outcome) -> Operation[None]:
        if isinstance(request, ScheduleRequest) and not isinstance(request, ScheduleResume) and outcome.receipt is None:
            yield from self._resume_if_due(writer, request)
        yield from super(ApplyAfterTimedResume, self)._apply(writer, request, request_id, outcome)

    def _resume_if_due(self, writer: ShardWriter, request: ScheduleRequest) -> Operation[None]:
        state = yield from self._state(writer, request)
        # A request from before the suspend is superseded. The pages of that suspend may still be open.
        if state is None or not _has_ended(state, writer.host.now) or state.position > self.row.origin:
            return
        assert state.until is not None
        timer = TimerRow(at=state.until, kind=keys.RESUME_TIMER, ref=keys.schedule_ref(state.namespace, state.name))
        # A reading may have begun before the end of the suspension. Events between the two were ignored, so only later readings serve.
        begun = self.ends.setdefault(state.until, writer.host.readings.begun)
        try:
            yield from resume_when_due(timer, self.memory, self.recurring, begun).run(writer)
        except (Fenced, WriterClosed, Deferred):
            raise
        except Exception as error:  # noqa: BLE001 - the row tries again later; a delete must work without the resume
            writer.host.failed("until", timer.ref, error)

    def _decide(
        self,
        writer: ShardWriter,
        request: ScheduleRequest,
        position: Position,
        before: ScheduleState | None,
        definition: Definition | None,
        now: int,
    ) -> Operation[StateChange]:
        """Decides the request. A resume counts from the end of the suspension; it takes the place of the timed one, because it names a `backlog`."""
        if isinstance(request, ScheduleResume) and before is not None and _has_ended(before, now):
            now = _suspension_end(before, definition, now)
        return (
            yield from super(ApplyAfterTimedResume, self)._decide(writer, request, position, before, definition, now)
        )


def _has_ended(state: ScheduleState, now: int) -> bool:
    return state.status == "suspended" and state.until is not None and state.until <= now


def _suspension_end(before: ScheduleState, definition: Definition | None, now: int) -> int:
    """Returns when the suspension ended: at the promised instant, however late the resume is carried out.

    Instants from then on are not part of the suspension. An update in the suspended span counts from its own instant. A schedule under `hold` has
    made jobs all the time, up to the end (`fires_through`). An event trigger subscribes from now on.
    """
    if definition is None or fires(before) or before.until is None:
        return now
    spec = parsed(definition.spec)
    if not isinstance(spec.trigger, TimeTrigger):
        return now
    promised = max(before.until, before.changed_at)
    return min(now, route_of(spec).resumes_from(promised, now))


def resume_when_due(timer: TimerRow, memory: ShardCache, recurring: RecurringQueue, begun: int) -> ResumeWhenDue:
    """Returns the procedure for a timer row of kind `U` that is due.

    Args:
        timer: Timer row.
        memory: Cache of the shard.
        recurring: Recurring messages of the shard.
        begun: Number of readings of topics' end offsets that have begun; the resume subscribes with later ones.
    """
    namespace, name = timer.ref.split("/", 1)
    request = ScheduleResume.model_construct(
        id=f"until/{timer.at}/{keys.text_hash(timer.ref)}",
        namespace=namespace,
        name=name,
        actor=ACTOR,
        reason="the suspension has ended",
    )
    row = InboxRow(
        namespace=namespace,
        name=name,
        kind=keys.REQUEST_INBOX,
        origin=FIRST_POSITION.text(),
        body=request.to_json().decode(),
    )
    return ResumeWhenDue(row=row, memory=memory, recurring=recurring, announce=_nobody, arrived=begun, timer=timer)


def _nobody(row: InboxRow, receipt: str) -> None:
    """No client waits for the answer; it is stored for a new owner."""
