"""A suspension with an end: the schedule is resumed when its timer row of kind `U` is due (SEMANTICS 10).

It is a resume like any other, asked for by the row instead of a record: under the position of the suspend, so that whatever a
user asked for since comes after it, and with a stored answer, so that a successor goes on where a predecessor stopped. The
row goes last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate_core.commands.apply_request import ApplyRequest
from tidegate_core.commands.request_answer import Outcome
from tidegate_core.commands.schedule_commands import MoveState, StateChange
from tidegate_core.engine.actor_context import Fenced
from tidegate_core.engine.decision import Deferred
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter, WriterClosed
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.requests import Request, ScheduleRequest, ScheduleResume
from tidegate_core.language.targets.message_target import MessageTarget
from tidegate_core.language.triggers import TimeTrigger
from tidegate_core.language.values.log_position import FIRST_POSITION, Position
from tidegate_core.messages.recurring.recurring_change import RecurringChange
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.rows import keys
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Batch, Delete
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS
from tidegate_core.shard.schedule_state import fires, parsed
from tidegate_core.shard.shard_cache import ShardCache

ACTOR = "tidegate"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeWhenDue(ApplyRequest):
    """Resumes a schedule whose suspension has come to its end.

    Attributes:
        timer: Of kind `U`.
    """

    timer: TimerRow
    name: str = "until"

    def run(self, lane: ShardWriter) -> Operation[None]:
        yield from self._receipt_once_told(lane)
        key = self.timer.key(lane.shard)
        yield from lane.host.write_for_good(Batch("until", (Delete(key),)))
        self.memory.apply_row(key, None)

    def _authorize(self, lane: ShardWriter, request: Request) -> None:
        """Tidegate itself asks: what an operator lets users' topics ask for has no say."""

    @property
    def _asked_at(self) -> int:
        """The position is that of a request amid the suspension, or before it: what came since then was ignored."""
        return self.timer.at

    def _decide(
        self,
        lane: ShardWriter,
        request: ScheduleRequest,
        position: Position,
        before: ScheduleState | None,
        definition: Definition | None,
        now: int,
    ) -> Operation[StateChange]:
        if before is None or before.status != "suspended" or before.until != self.timer.at:
            return StateChange(ReceiptStatus.UNCHANGED)  # Somebody has resumed or deleted it since.
        own = Position.parse(before.position)
        now = _ended_at(before, definition, now)
        # By name: a dataclass with slots is a class made anew, which a bare `super` does not know.
        return (yield from super(ResumeWhenDue, self)._decide(lane, request, own, before, definition, now))

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
        return MoveState(
            request, request_id, position, applied, before, outcome, self.memory, change, keeps_until=self.timer.at
        )


@dataclass(frozen=True, slots=True)
class ApplyAfterTimedResume(ApplyRequest):
    """Applies a user's request: one on a schedule whose suspension has ended, and that nobody has resumed yet, finds it resumed.

    Attributes:
        ends: How many readings of topics' ends had begun once an end was found: only later ones serve it. Of each, for one that is begun anew.
    """

    ends: dict[int, int] = field(default_factory=dict, compare=False)

    def _apply(self, lane: ShardWriter, request: Request, request_id: str, outcome: Outcome) -> Operation[None]:
        if isinstance(request, ScheduleRequest) and not isinstance(request, ScheduleResume) and outcome.receipt is None:
            yield from self._resume_if_due(lane, request)
        yield from super(ApplyAfterTimedResume, self)._apply(lane, request, request_id, outcome)

    def _resume_if_due(self, lane: ShardWriter, request: ScheduleRequest) -> Operation[None]:
        state = yield from self._state(lane, request)
        # One from before the suspend is superseded: the pages of that may still be to come.
        if state is None or not _has_ended(state, lane.host.now) or state.position > self.row.origin:
            return
        assert state.until is not None
        timer = TimerRow(at=state.until, kind=keys.RESUME_TIMER, ref=keys.schedule_ref(state.namespace, state.name))
        # Of what was read since this request arrived, some may have been before the end: what came between them was ignored.
        begun = self.ends.setdefault(state.until, lane.host.readings.begun)
        try:
            yield from resume_when_due(timer, self.memory, self.recurring, begun).run(lane)
        except (Fenced, WriterClosed, Deferred):
            raise
        except Exception as error:  # noqa: BLE001 - the row brings it again; a delete must do without
            lane.host.failed("until", timer.ref, error)

    def _decide(
        self,
        lane: ShardWriter,
        request: ScheduleRequest,
        position: Position,
        before: ScheduleState | None,
        definition: Definition | None,
        now: int,
    ) -> Operation[StateChange]:
        """A resume is carried out itself, for the sake of its `backlog`; but from when the suspension has ended."""
        if isinstance(request, ScheduleResume) and before is not None and _has_ended(before, now):
            now = _ended_at(before, definition, now)
        return (yield from super(ApplyAfterTimedResume, self)._decide(lane, request, position, before, definition, now))


def _has_ended(state: ScheduleState, now: int) -> bool:
    return state.status == "suspended" and state.until is not None and state.until <= now


def _ended_at(before: ScheduleState, definition: Definition | None, now: int) -> int:
    """Returns when the suspension ended: as promised, however late somebody comes to carry it out. What is due from then on is no part of it;
    an update in the suspended span counts from itself.

    What made jobs all along (`hold`) has none to make for it, and makes none behind it before (`fires_through`); what hears events listens
    from where it can. Messages have no jobs that could wait for their turn: of them as much is sent as is late, and no miss.
    """
    if definition is None or fires(before) or before.until is None:
        return now
    spec = parsed(definition.spec)
    if not isinstance(spec.trigger, TimeTrigger):
        return now
    promised = max(before.until, before.changed_at)
    if isinstance(spec.target, MessageTarget):
        promised = max(promised, now - OUTAGE_GRACE_MS)
    return min(now, promised)


def resume_when_due(timer: TimerRow, memory: ShardCache, recurring: RecurringQueue, begun: int) -> ResumeWhenDue:
    """Returns the procedure for a timer row of kind `U` that is due.

    Args:
        timer: The row.
        memory: Of the run plane.
        recurring: Of schedules that send messages.
        begun: Readings of topics' ends that have begun by now: it listens again from later ones on.
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
    """Nobody waits for the answer; it is stored for a successor."""
