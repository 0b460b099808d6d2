"""The procedure that applies one request from the inbox: find out what is done already, decide, write, answer (DESIGN 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate_core.decisions.event_index import vector_item
from tidegate_core.decisions.lane import Lane, Procedure
from tidegate_core.decisions.operations import Operation
from tidegate_core.decisions.run_plane import control
from tidegate_core.decisions.run_plane.answers import Outcome
from tidegate_core.decisions.run_plane.by_id import CancelJob, CancelRun, TriggerNow
from tidegate_core.decisions.run_plane.control import Applied, MoveState
from tidegate_core.decisions.run_plane.definitions import parsed
from tidegate_core.decisions.run_plane.ending import EndPending
from tidegate_core.decisions.run_plane.fire import FireSchedule
from tidegate_core.effects import Commit, Committed, EndOffsets, Inspect, Inspected, ReadEndOffsets, Unavailable, Write
from tidegate_core.model.parsing import parse_request
from tidegate_core.model.position import Position
from tidegate_core.model.problems import Problem, RefusedRecord
from tidegate_core.model.receipts import Receipt, ReceiptStatus
from tidegate_core.model.requests import (
    JobCancel,
    Request,
    RunCancel,
    ScheduleApply,
    ScheduleDelete,
    ScheduleRequest,
    ScheduleResume,
    ScheduleSuspend,
    ScheduleTrigger,
)
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.model.schedule_checks import check_schedule
from tidegate_core.records.codec import from_item, to_item
from tidegate_core.records.receipts import StoredReceipt
from tidegate_core.records.run_plane import Definition, InboxRow, IndexRow, ScheduleState, TimerRow
from tidegate_core.store import keys
from tidegate_core.store.values import Batch, Delete, Item, Key, Put, Transaction, Update
from tidegate_core.transactions.unit_of_work import NotAtHand
from tidegate_core.triggers.base import EventTrigger

if TYPE_CHECKING:
    from tidegate_core.decisions.shard_actor import ShardActor


ENDED_BY: Mapping[type[ScheduleRequest], str] = {
    ScheduleApply: "superseded",
    ScheduleDelete: "schedule_deleted",
    ScheduleSuspend: "suspended",
}
"""Reason in the ledger of what a request ends."""


def request_id_of(request_id: str | None, origin: str) -> str:
    """Returns the id under which the receipt lies; a request without one is known by its position."""
    return request_id if request_id is not None else f"@{origin}"


@dataclass(frozen=True, slots=True)
class ApplyRequest(Procedure):
    """Applies one inbox row of kind `Q`, in the lane, then has its receipt announced."""

    row: InboxRow
    actor: ShardActor
    name: str = "request"

    def run(self, lane: Lane) -> Operation[None]:
        receipt = yield from self._receipt(lane)
        self.actor.announce(self.row, receipt)

    def _receipt(self, lane: Lane) -> Operation[str]:
        try:
            request = parse_request(self.row.body.encode())
        except RefusedRecord as refused:
            # Ingest accepted it; only a newer node's grammar can lead here (rolling downgrade).
            return self._refusal(refused, lane.host.now)
        request_id = request_id_of(request.id, self.row.origin)
        key = keys.receipt(lane.shard, request_id)
        yield from lane.fetch(NotAtHand(keys=[key]))
        item = lane.view.item(key)
        stored = None if item is None else from_item(StoredReceipt, item)
        if stored is not None and stored.settled:
            return stored.body
        # An answer that is not settled is our own, from before a crash: only what is pending is left to be ended.
        outcome = Outcome(None if stored is None else Receipt.model_validate_json(stored.body))
        yield from self._apply(lane, request, request_id, outcome)
        assert outcome.receipt is not None
        return outcome.receipt.to_json().decode()

    def _refusal(self, refused: RefusedRecord, now: int) -> str:
        receipt = Receipt.model_construct(
            request_id=request_id_of(refused.request_id, self.row.origin),
            status=ReceiptStatus.REJECTED,
            namespace=self.row.namespace,
            name=self.row.name,
            errors=refused.problems,
            at=now,
        )
        return receipt.to_json().decode()

    def _apply(self, lane: Lane, request: Request, request_id: str, outcome: Outcome) -> Operation[None]:
        position = Position.parse(self.row.origin)
        match request:
            case ScheduleTrigger():
                yield from lane.decide_alone(TriggerNow(request, request_id, position, outcome))
            case RunCancel():
                cancel_run = CancelRun(lane.shard, request.run_id, request_id, request.namespace, outcome)
                yield from lane.decide_alone(cancel_run)
            case JobCancel():
                cancel_job = CancelJob(request.job_id, request_id, request.namespace, outcome)
                yield from lane.decide_alone(cancel_job)
            case ScheduleApply() | ScheduleDelete() | ScheduleSuspend() | ScheduleResume():
                yield from self._apply_to_schedule(lane, request, request_id, position, outcome)
            case _:
                raise AssertionError(f"{request.type} is no request of the run plane")

    # -- requests that move a schedule's state ------------------------------------------------------------------------

    def _apply_to_schedule(
        self, lane: Lane, request: ScheduleRequest, request_id: str, position: Position, outcome: Outcome
    ) -> Operation[None]:
        before = yield from self._state(lane, request)
        definition = yield from self._definition(lane, before)
        applied = Applied(ReceiptStatus.ACCEPTED)
        if outcome.receipt is None:
            before = yield from self._make_due(lane, request, before)
            applied = yield from self._decide(lane, request, position, before, definition)
            yield from lane.decide_alone(MoveState(request, request_id, position, applied, before, outcome))
        while not outcome.settled:
            assert outcome.receipt is not None
            reason = ENDED_BY[type(request)]
            yield from lane.decide_alone(EndPending(request, outcome.receipt, reason, self.actor.memory, outcome))
        moved = before is not None and applied.state is not None and applied.state.generation != before.generation
        if moved and before is not None and definition is not None:
            yield from self._unlisten(lane, before, parsed(definition.spec))

    def _make_due(
        self, lane: Lane, request: ScheduleRequest, before: ScheduleState | None
    ) -> Operation[ScheduleState | None]:
        """Makes what was due before the request came: what ends then ends with a ledger row, never silently (I1)."""
        ref = keys.schedule_ref(request.namespace, request.name)
        while before is not None and before.next_nominal is not None and before.next_nominal <= lane.host.now:
            row = TimerRow(at=before.next_nominal, kind="S", ref=ref)
            yield from lane.decide_alone(FireSchedule(row))
            before = yield from self._state(lane, request)
        return before

    def _decide(
        self,
        lane: Lane,
        request: ScheduleRequest,
        position: Position,
        before: ScheduleState | None,
        definition: Definition | None,
    ) -> Operation[Applied]:
        now = lane.host.now
        if before is not None and before.position > position.text():
            return Applied(ReceiptStatus.SUPERSEDED)
        if not _version_expected(request, before):
            found = 0 if before is None or before.status == "deleted" else before.version
            problem = f"is {request.expected_version}, the schedule is at version {found}"
            return Applied(
                ReceiptStatus.CONFLICT, errors=(Problem(field="expected_version", problem=problem, hint=""),)
            )
        match request:
            case ScheduleApply():
                return (yield from self._decide_apply(lane, request, position, before))
            case ScheduleDelete():
                return control.deleted(before, request, position, now)
            case ScheduleSuspend():
                return control.suspended(before, request, position, now)
            case ScheduleResume():
                applied = control.resumed(before, definition, request, position, now)
                if applied.status is ReceiptStatus.ACCEPTED and applied.state is not None and definition is not None:
                    yield from self._listen(lane, applied.state, parsed(definition.spec))
                return applied
            case _:
                raise AssertionError(f"{request!r} does not move a schedule's state")

    def _decide_apply(
        self, lane: Lane, request: ScheduleApply, position: Position, before: ScheduleState | None
    ) -> Operation[Applied]:
        spec = request.spec
        now = lane.host.now
        applied = control.applied_spec(before, spec, position, request.actor, request.reason, now)
        if applied.definition is None or applied.state is None:
            return applied
        holding = lane.host.holding
        problems = check_schedule(spec, now=now, minimum_period_ms=holding.minimum_period_ms)
        errors = problems
        program = spec.target.program
        inspected = yield Inspect(program.type, program.file)
        assert isinstance(inspected, Inspected)
        if inspected.problem is not None:
            hint = "give the path of a file that the nodes can read"
            errors += (Problem(field="target.program.file", problem=inspected.problem, hint=hint),)
        if errors:
            return Applied(ReceiptStatus.REJECTED, errors=errors)
        if applied.state.status == "active":
            yield from self._listen(lane, applied.state, spec)
        return applied

    # -- listening ----------------------------------------------------------------------------------------------------

    def _listen(self, lane: Lane, state: ScheduleState, spec: ScheduleSpec) -> Operation[None]:
        """Writes the index rows and raises their versions, before the state moves and long before the receipt.

        So whoever reads an event that was produced after the receipt reads a version that makes it see these rows. Rows of
        a request that then fails are inert: the owner counts for the present generation only.
        """
        rows = yield from self._index_rows(lane, state, spec)
        if rows:
            yield from self._write(lane, "index", [Put(row.key(), to_item(row, row.key())) for row in rows])
            yield from self._raise_versions(lane, rows)

    def _unlisten(self, lane: Lane, before: ScheduleState, spec: ScheduleSpec) -> Operation[None]:
        """Removes the rows of the generation before; until then its matches are dropped by the owner."""
        if not isinstance(spec.trigger, EventTrigger):
            return
        keys_before = [
            keys.index_row(leaf.event_key(spec.namespace), spec.namespace, spec.name, before.generation, number)
            for number, leaf in enumerate(spec.trigger.leaves())
        ]
        yield from self._write(lane, "unindex", [Delete(key) for key in keys_before])

    def _index_rows(self, lane: Lane, state: ScheduleState, spec: ScheduleSpec) -> Operation[list[IndexRow]]:
        if not isinstance(spec.trigger, EventTrigger):
            return []
        event_keys = [leaf.event_key(spec.namespace) for leaf in spec.trigger.leaves()]
        vector = None
        if any(event_key.startswith("data/") for event_key in event_keys):
            vector = yield from self._activation_vector(lane)
        return [
            IndexRow(
                event_key=event_key,
                namespace=spec.namespace,
                name=spec.name,
                incarnation=state.incarnation,
                generation=state.generation,
                leaf=number,
                shard=lane.shard,
                activated_at=state.activated_at,
                vector=vector if event_key.startswith("data/") else None,
            )
            for number, event_key in enumerate(event_keys)
        ]

    def _activation_vector(self, lane: Lane) -> Operation[str]:
        """Reads the end offsets after the request arrived: events below never count, those after the receipt always do."""
        result = yield from lane.host.read_for_good(ReadEndOffsets(lane.host.holding.events.name))
        assert isinstance(result, EndOffsets)
        vector_id, key, item = vector_item(result.offsets)
        yield from self._write(lane, "vector", [Put(key, item)])
        return vector_id

    def _raise_versions(self, lane: Lane, rows: list[IndexRow]) -> Operation[None]:
        for index_shard in sorted({keys.index_shard_of(row.event_key) for row in rows}):
            key = keys.index_version(index_shard)
            token = lane.host.token()
            # ADD without a condition: repeated or late ones raise it once more, which costs a reader one query.
            update = Update(
                key, "ADD #version :one SET #w = :w", {"#version": "version", "#w": "w"}, {":one": 1, ":w": token}
            )
            while not isinstance((yield Commit(Transaction("raise_index", (update,), token, key))), Committed):
                yield from lane.host.sleep(200)

    def _write(self, lane: Lane, name: str, actions: list[Put | Delete]) -> Operation[None]:
        while isinstance((yield Write(Batch(name, tuple(actions)))), Unavailable):
            yield from lane.host.sleep(200)

    # -- reading ------------------------------------------------------------------------------------------------------

    def _state(self, lane: Lane, request: ScheduleRequest) -> Operation[ScheduleState | None]:
        key = keys.schedule_state(lane.shard, request.namespace, request.name)
        item = yield from _read(lane, key)
        return None if item is None else from_item(ScheduleState, item)

    def _definition(self, lane: Lane, state: ScheduleState | None) -> Operation[Definition | None]:
        if state is None or state.status == "deleted":
            return None
        item = yield from _read(lane, keys.definition(lane.shard, state.namespace, state.name, state.version))
        return None if item is None else from_item(Definition, item)


def _read(lane: Lane, key: Key) -> Operation[Item | None]:
    yield from lane.fetch(NotAtHand(keys=[key]))
    return lane.view.item(key)


def _version_expected(request: ScheduleRequest, before: ScheduleState | None) -> bool:
    """`expected_version`: None is no check, 0 means that it must not exist (SEMANTICS 18)."""
    if request.expected_version is None:
        return True
    exists = before is not None and before.status != "deleted"
    return request.expected_version == (before.version if exists and before is not None else 0)
