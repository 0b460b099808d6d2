"""Work that failed: it is reported, set aside and tried again at a bounded rate, while later work goes on.

A fault of one schedule, run or request, such as a bug or an item that outgrew the store, must stop neither its shard nor the process. It must
never be silent. The shard writer hands over work that it dropped. `RefuseRequest` writes the receipt of a request that failed.
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
"""Interval between tries. A corrected release may wait that long, and one log line in ten minutes is enough."""


class Quarantine:
    """The policy for each kind of failed work; one per shard."""

    def __init__(
        self, writer: ShardWriter, memory: ShardCache, admission: AdmissionScheduler, attempts: Attempts
    ) -> None:
        self._writer = writer
        self._host = writer.host
        self._memory = memory
        self._admission = admission
        self._attempts = attempts

    def take(self, work: Work, error: Exception) -> None:
        """Takes work that the shard writer has dropped because of an error."""
        match work:
            case MatchEvents(rows=rows) if len(rows) > 1:
                self._writer.add_first(
                    *(replace(work, rows=(row,)) for row in rows)
                )  # One of the rows causes the error.
                return
            case AdmitNext(most=most) if most > 1:
                self._writer.add_first(replace(work, most=1))
                return
            case EndSuspendedWork(told=told) | FinishSuspensions(told=told):
                told(error)  # The waiting operation reports it: a later suspension must not wait for this one.
                return
            case _:
                pass
        self._host.failed(work.name, work.about, error)
        match work:
            case AdmitNext(ref, looked_at=looked_at):
                self._set_aside(ref, looked_at)
            case ResumeWhenDue() | RemoveUpstream():
                self._later(work)  # No sender waits for an answer.
            case ApplyRequest():
                self._writer.add_first(RefuseRequest(work, error, self._owes))
            case CheckRun() | FireSchedule() | ExpireEvidence() | LatchTicks():
                pass  # The sweep brings it again.
            case MarkLost() | RequestCancel():
                # The requester asks again while the reason lasts. By then the program may be found, or its place no longer needed.
                pass
            case (
                MarkSubmitted(run_id=run_id)
                | RejectRun(run_id=run_id)
                | AttemptEnded(run_id=run_id)
                | RescheduleAttempt(run_id=run_id)
            ):
                # The launcher's answer is stale by then, so a new query follows.
                self._host.call_at(self._host.now + TRY_AGAIN_MS, partial(self._attempts.adopt, run_id))
            case PlaceRecord(source=source, summons=Key() as summons):
                source.summoned.given_up(summons)  # The repair sweep brings it again.
            case _:
                self._later(work)

    def _later(self, work: Work) -> None:
        self._host.call_at(self._host.now + TRY_AGAIN_MS, partial(self._writer.add, work))

    def _owes(self, request: ApplyRequest) -> None:
        """Tries a request again that is done in part. Its cached receipt is dropped: a repeat of the request then completes it sooner."""
        self._writer.view.forget([request.receipt_key(self._writer.shard)])
        self._later(request)

    def _set_aside(self, ref: str, looked_at: Sequence[str]) -> None:
        """Sets aside the waiting jobs whose decision failed; if they are not known, the first one. The others go on."""
        for job_id in looked_at or self._memory.waiting(ref)[:1]:
            self._memory.set_aside(job_id)
            self._host.call_at(self._host.now + TRY_AGAIN_MS, partial(self._take_back, ref, job_id))
        self._admission.decided(ref, goes_on=True)

    def _take_back(self, ref: str, job_id: str) -> None:
        self._memory.take_back(job_id)
        self._admission.request(ref)


@dataclass(frozen=True, slots=True)
class RefuseRequest:
    """Rejects a request that could not be applied. If a part of it is done already, `owes` is called instead, to complete it.

    Like every receipt it is written under the lease: a former owner that failed must not reject a request that its successor has applied.

    Attributes:
        request: Request that failed.
        error: Reason of the failure.
        owes: Called if a part of the request is done.
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
