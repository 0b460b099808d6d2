"""Work that cannot be done as things are: told, set aside, tried again at a bounded pace; what stands behind it goes on.

Whatever is wrong with one schedule, run or request (a bug, an item that outgrew the store) must stop neither its shard nor
the process, and must never be silent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tidegate_core.admission.admit import AdmitNext
from tidegate_core.commands.apply_request import ApplyRequest
from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.commands.shard_suspension import EndSuspendedWork, FinishSuspensions
from tidegate_core.commands.timed_resume import ResumeWhenDue
from tidegate_core.commands.upstream_deleted import RemoveUpstream
from tidegate_core.engine.decision import Work
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.evidence.expiry import ExpireEvidence, LatchTicks
from tidegate_core.evidence.match import MatchEvents
from tidegate_core.firing.fire import FireSchedule
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.messages.recurring.recurring_change import PlaceRecord
from tidegate_core.ownership.admission_scheduler import AdmissionScheduler
from tidegate_core.rows.receipt import definition_of, subject_of
from tidegate_core.rows.store_operations import Key
from tidegate_core.runs.attempts import Attempts
from tidegate_core.runs.run_lifecycle import (
    AttemptEnded,
    CheckRun,
    MarkLost,
    MarkSubmitted,
    RejectRun,
    RequestCancel,
    RescheduleAttempt,
)
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.unit_of_work import UnitOfWork

TRY_AGAIN_MS = 10 * 60_000
"""Longer than a roll-out of a corrected version may have to wait, and a line in the log every ten minutes is enough."""


class Quarantine:
    """One per shard."""

    def __init__(self, lane: ShardWriter, memory: ShardCache, waiting: AdmissionScheduler, attempts: Attempts) -> None:
        self._lane = lane
        self._host = lane.host
        self._memory = memory
        self._waiting = waiting
        self._attempts = attempts

    def take(self, work: Work, error: Exception) -> None:
        """Takes what the lane has dropped."""
        match work:
            case MatchEvents(rows=rows) if len(rows) > 1:
                self._lane.add_first(*(replace(work, rows=(row,)) for row in rows))  # One of them is to blame.
                return
            case AdmitNext(most=most) if most > 1:
                self._lane.add_first(replace(work, most=1))
                return
            case EndSuspendedWork(told=told) | FinishSuspensions(told=told):
                told(error)  # Whoever waits for it says so: a control that comes meanwhile must not wait for this one.
                return
            case _:
                pass
        self._host.failed(work.name, work.about, error)
        match work:
            case AdmitNext(ref, looked_at=looked_at):
                self._set_aside(ref, looked_at)
            case ResumeWhenDue() | RemoveUpstream():
                self._later(work)  # Nobody waits for its answer.
            case ApplyRequest():
                self._lane.add_first(RefuseRequest(work, error, self._owes))
            case CheckRun() | FireSchedule() | ExpireEvidence() | LatchTicks():
                pass  # The sweep brings it again.
            case MarkLost() | RequestCancel():
                # Whoever asks for it asks again for as long as it is so: by then the program may be found, or its place not wanted.
                pass
            case (
                MarkSubmitted(run_id=run_id)
                | RejectRun(run_id=run_id)
                | AttemptEnded(run_id=run_id)
                | RescheduleAttempt(run_id=run_id)
            ):
                # What the launcher said is stale by then: it is asked again.
                self._host.call_at(self._host.now + TRY_AGAIN_MS, partial(self._attempts.adopt, run_id))
            case PlaceRecord(source=source, summons=Key() as summons):
                source.summoned.given_up(summons)  # The sweep of what stands brings it again.
            case _:
                self._later(work)

    def _later(self, work: Work) -> None:
        self._host.call_at(self._host.now + TRY_AGAIN_MS, partial(self._lane.add, work))

    def _owes(self, request: ApplyRequest) -> None:
        """Has a request whose answer is stored brought to its end. Until then what was read of the answer serves no repeat, which does it sooner."""
        self._lane.view.forget([request.receipt_key(self._lane.shard)])
        self._later(request)

    def _set_aside(self, ref: str, looked_at: Sequence[str]) -> None:
        """A waiting job of the schedule cannot be decided on: the others have their turn. It is the first, unless it is known which."""
        for job_id in looked_at or self._memory.waiting(ref)[:1]:
            self._memory.set_aside(job_id)
            self._host.call_at(self._host.now + TRY_AGAIN_MS, partial(self._take_back, ref, job_id))
        self._waiting.decided(ref, goes_on=True)

    def _take_back(self, ref: str, job_id: str) -> None:
        self._memory.take_back(job_id)
        self._waiting.request(ref)


@dataclass(frozen=True, slots=True)
class RefuseRequest:
    """Tells who waits for the answer to a request that cannot be applied, unless something was done already: that has to be brought to its end.

    Under the lease, as every answer: a former owner that failed at it must not say `rejected` of what its successor has applied.

    Attributes:
        request: What could not be applied.
        error: Why.
        owes: Called where something was done already.
    """

    request: ApplyRequest
    error: Exception
    owes: Callable[[ApplyRequest], None]
    name: str = "refuse"

    @property
    def about(self) -> str:
        return self.request.about

    @property
    def stale(self) -> tuple[Key, ...]:
        return ()

    def decide(self, unit: UnitOfWork, now: int) -> None:
        asked, request = parse_request(self.request.row.body.encode()), self.request
        if unit.item(request.receipt_key(unit.shard)) is not None:
            unit.after(partial(self.owes, request))
            return
        outcome, receipt = (
            Outcome(subject_of(asked), definition=definition_of(asked)),
            request.refusal_for(self.error, now),
        )
        answer(unit, outcome, receipt, now, under=asked.namespace)
        unit.after(partial(request.announce, request.row, receipt.to_json().decode()))
