"""Removes a deleted upstream schedule from the triggers that wait for it; a schedule that cannot fire without it is deleted.

The delete leaves an outbox row, as the end of a run does. Subscribers get an inbox row from it, after all earlier ends of runs. The owner of a
subscriber applies that inbox row as a request of tidegate. The answer is stored, so that a new owner continues after a crash; the inbox row is
deleted last.

The definition and the evidence stay as they are: leaves keep their numbers, and the state names the upstream schedules that are gone. When a user
applies the definition again, it subscribes to that name again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from tidegate_core.commands.apply_request import ApplyRequest
from tidegate_core.commands.end_pending import UPSTREAM_DELETED, EndPending
from tidegate_core.commands.request_answer import Outcome
from tidegate_core.commands.schedule_commands import StateChange, deleted
from tidegate_core.commands.timed_resume import ACTOR
from tidegate_core.engine.decision import Decision
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.evidence.match import append_times
from tidegate_core.language.events.trigger_facts import ScheduleGone
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.requests import Request, ScheduleDelete, ScheduleRequest
from tidegate_core.language.triggers.composite.composite_nodes import without
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.instants import LATEST_INSTANT
from tidegate_core.language.values.log_position import FIRST_POSITION, Position
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.rows import keys
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.shard.events.outbox import ACTIVATION_SLACK_MS
from tidegate_core.shard.schedule_state import parsed
from tidegate_core.shard.shard_cache import ShardCache


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveUpstream(ApplyRequest):
    """Removes a deleted schedule from the trigger of one subscriber.

    Attributes:
        gone: `<ns>/<name>` of the deleted schedule.
        heard: Incarnation and generation of each version that subscribed before the delete. A version that was activated later subscribes to a
            new schedule of that name.
        at: Instant of the delete.
        done: Callback that removes the inbox row.
        leave: Callback that leaves the row until a scope suspension is over.
        put_off: Callback that moves the row after the rows that wait in the inbox.
    """

    gone: str
    heard: frozenset[tuple[str, int]]
    at: int
    done: Callable[[], None]
    leave: Callable[[], None]
    put_off: Callable[[], None]
    name: str = "upstream_gone"

    def run(self, writer: ShardWriter) -> Operation[None]:
        controls = writer.controls
        if controls.covers(self.row.namespace) and self.memory.left_rows.may_count(controls.version, self.at):
            # Earlier ends of runs wait for that suspension too. Applied before them, the delete would hide which incarnation they belong to.
            self.leave()
            return
        if self._waits_for_an_end():
            self.put_off()
            return
        yield from self._receipt_once_told(writer)
        self.done()

    def _authorize(self, writer: ShardWriter, request: Request) -> None:
        """Allows the request: tidegate made it, so the rules for topics of users do not apply."""

    def _waits_for_an_end(self) -> bool:
        """Whether the inbox still has an earlier end of a run of the deleted schedule, which waits for earlier events."""
        if not self.memory.settled.waits(self.ref):
            return False
        own = (self.row.namespace, self.row.name)
        rows = [
            row
            for row in self.memory.inbox.values()
            if row.kind == keys.EVENTS_INBOX and (row.namespace, row.name) == own
        ]
        return any(map(self._tells_of_it, rows))

    def _tells_of_it(self, row: InboxRow) -> bool:
        if min(append_times(row), default=LATEST_INSTANT) > self.at + ACTIVATION_SLACK_MS:
            return False  # The row is about a later incarnation.
        facts = (matched.get("fact") for matched in json.loads(row.body))
        told = [json.loads(fact) for fact in facts if fact is not None]
        return any(keys.schedule_ref(each.get("namespace", ""), each.get("schedule", "")) == self.gone for each in told)

    def _decide(
        self,
        writer: ShardWriter,
        request: ScheduleRequest,
        position: Position,
        before: ScheduleState | None,
        definition: Definition | None,
        now: int,
    ) -> Operation[StateChange]:
        yield from ()
        if before is None or definition is None or (before.incarnation, before.generation) not in self.heard:
            return StateChange(ReceiptStatus.UNCHANGED)  # The subscriber was deleted, suspended or updated since.
        if self.at < before.activated_at - ACTIVATION_SLACK_MS:
            # A former owner may have written the row of the subscription, with another instant.
            return StateChange(ReceiptStatus.UNCHANGED)
        trigger = parsed(definition.spec).trigger
        if not isinstance(trigger, EventTrigger) or self.gone in before.gone:
            return StateChange(ReceiptStatus.UNCHANGED)
        gone = (*before.gone, self.gone)
        ends = without(trigger, before.namespace, frozenset(gone)) is None
        writer.host.note("upstream_deleted", schedule=self.ref, upstream=self.gone, ended=ends)
        if ends:
            return deleted(before, request, Position.parse(before.position), now)
        return StateChange(ReceiptStatus.ACCEPTED, replace(before, gone=gone))

    @property
    def ref(self) -> str:
        return keys.schedule_ref(self.row.namespace, self.row.name)

    def _page(self, request: ScheduleRequest, state: ScheduleState, outcome: Outcome, most: int | None) -> Decision:
        assert outcome.receipt is not None
        return EndPending(request, outcome.receipt, UPSTREAM_DELETED, self.memory, outcome, most)


def upstream_gone(
    row: InboxRow,
    memory: ShardCache,
    recurring: RecurringQueue,
    done: Callable[[InboxRow], None],
    put_off: Callable[[InboxRow], None],
    arrived: int,
) -> RemoveUpstream:
    """Returns the procedure for an inbox row of kind `G`.

    Raises:
        ValueError: This release cannot read the row.
    """
    matched = json.loads(row.body)
    told = ScheduleGone.model_validate_json(matched[0]["fact"])
    upstream = keys.schedule_ref(told.namespace, told.schedule)
    request = ScheduleDelete.model_construct(
        id=f"upstream/{row.origin}/{keys.text_hash(row.namespace, row.name)}",
        namespace=row.namespace,
        name=row.name,
        actor=ACTOR,
        reason=f"{upstream}, which it waited for, was deleted",
    )
    asked = replace(row, kind=keys.REQUEST_INBOX, origin=FIRST_POSITION.text(), body=request.to_json().decode())
    return RemoveUpstream(
        row=asked,
        memory=memory,
        recurring=recurring,
        announce=_nobody,
        arrived=arrived,
        gone=upstream,
        heard=frozenset((each["incarnation"], each["generation"]) for each in matched),
        at=told.at,
        done=lambda: done(row),
        leave=lambda: memory.leave_in_inbox(row.key(memory.shard), told.at),
        put_off=lambda: put_off(row),
    )


def _nobody(row: InboxRow, receipt: str) -> None:
    """No client waits for the answer; it is stored for a new owner."""
