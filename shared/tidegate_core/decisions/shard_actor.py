"""All that one shard decides in the run plane, without I/O: the node drives it with real answers, the simulator with invented ones.

What is kept in memory and what is to be done next both follow from rows: `_follow` is called with each row that is read at
recovery and with each row that a transaction has written. So a successor goes on from the rows where a
predecessor stopped, by the same code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from tidegate_core.decisions.delivery_plane.plane import DeliveryPlane
from tidegate_core.decisions.event_index import EventIndex, Listener
from tidegate_core.decisions.host import Host
from tidegate_core.decisions.lane import Lane
from tidegate_core.decisions.operations import Operation, Signal
from tidegate_core.decisions.run_plane.admit import AdmitNext
from tidegate_core.decisions.run_plane.count import (
    INBOX_ROWS_PER_DECISION,
    CountEvents,
    chunk_range,
    merged_entries,
)
from tidegate_core.decisions.run_plane.expire import ExpireEvidence, wait_for_watermark
from tidegate_core.decisions.run_plane.fire import FireSchedule
from tidegate_core.decisions.run_plane.launching import launch_order
from tidegate_core.decisions.run_plane.memory import Memory
from tidegate_core.decisions.run_plane.outbox import Distribute
from tidegate_core.decisions.run_plane.request import ApplyRequest
from tidegate_core.decisions.run_plane.runs import LookAtRun, MarkLost, MarkSubmitted, RejectRun, RunGone, run_record
from tidegate_core.effects import (
    Cancel,
    Gone,
    LookedUp,
    Lookup,
    NotProduced,
    NotSubmitted,
    Produce,
    Produced,
    Submit,
    SubmitFailed,
    Submitted,
    Unavailable,
    Watch,
    Write,
)
from tidegate_core.model.facts import fact_from_json
from tidegate_core.model.states import RunState
from tidegate_core.records.codec import from_item
from tidegate_core.records.run_plane import InboxRow, Job, OutboxRow, Run, TimerRow
from tidegate_core.store import keys
from tidegate_core.store.values import Batch, Delete, Item, Key

TIMER_WINDOW_MS = 5 * 60_000
"""How far ahead timer rows are held in memory; they are read again, from the beginning, at half of it."""
SWEEP_MS = 10_000
"""A lost poke costs at most this (DESIGN 4)."""
PRODUCE_RETRY_MS = 500
SUBMIT_RETRY_MS = 1_000
SUBMIT_RETRY_LAST_MS = 30_000
PROBE_GAP_MS = 10 * 60_000
"""SEMANTICS 13: a run whose host cannot be asked for this long is `lost`."""
ADMISSIONS_AT_ONCE = 16


class ShardActor:
    """The run plane of one shard, from its fence on.

    Args:
        host: Shared parts of the partition actor.
        index: The node's event index.
        plane: The shard's delivery plane, for messages that came through the inbox.
        shard: 0 to S-1.
        epoch: Under which the shard was acquired; every write checks it.
        controls: Version of wide controls that the lease carries.
    """

    def __init__(
        self, host: Host, index: EventIndex, plane: DeliveryPlane, shard: int, epoch: int, controls: int
    ) -> None:
        self.shard = shard
        self.plane = plane
        self.memory = Memory(shard)
        self._host = host
        self._index = index
        self._lane = Lane(host, shard, epoch, controls, self._written, self._arm)
        self._inbox = Signal(f"inbox {shard}")
        self._reads_of_inbox = 0
        self._draining = False
        self._wake_at: int | None = None
        self._launching: set[tuple[str, int]] = set()
        self._matched: dict[Key, Signal] = {}
        self._listeners: dict[Key, Sequence[Listener]] = {}

    # -- life ---------------------------------------------------------------------------------------------------------

    def recover(self) -> Operation[None]:
        """Reads all that is open (strictly after the fence: nothing of an older epoch can change any more), then serves."""
        self.memory.horizon = self._host.now + TIMER_WINDOW_MS
        rows: list[Item] = []
        yield from self.plane.recover([row.origin for row in (yield from self._pending()) if row.kind == "M"])
        for low, high in (("J#", "J#~"), ("R#", "R#~"), ("Z#", "Z#~")):
            rows.extend((yield from self._lane.read_range(low, high)))
        rows.extend((yield from self._read_timers()))
        for row in rows:
            key = Key(str(row["pk"]), str(row["sk"]))
            self._lane.view.learn([key], {key: row})
            self.memory.learn(key, row)
        self._host.operations.start(self._lane.serve())
        for run in list(self.memory.runs.values()):
            self._host.operations.start(self._adopt(run))
        for outbox_key in list(self.memory.outbox):
            self._host.operations.start(self._send_out(outbox_key))
        self._host.operations.start(self._read_inbox())
        self._host.operations.start(self._sweep())
        for ref in self.memory.waiting_refs():
            self._look_at_waiting(ref)
        self._arm()

    def drain(self) -> Operation[None]:
        """Takes no new work and waits for the transaction under way."""
        self._draining = True
        self._lane.close()
        while not self._lane.is_idle:
            yield from self._host.sleep(5)

    def poke(self, run_id: str | None) -> None:
        """Somebody says that there is something in the inbox, or that a run's item has changed."""
        if self._draining:
            return
        if run_id is None:
            self._host.operations.raise_(self._inbox)
        elif run_id in self.memory.runs:
            self._lane.add(LookAtRun(self.shard, run_id, self._started))

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _written(self, key: Key, item: Item | None) -> None:
        """A transaction of this shard has written the row: remember it, and start what follows from it."""
        if key.table != "main" or key.pk != keys.shard_pk(self.shard):
            return
        kind = key.sk.split("#", 1)[0]
        job_before = self.memory.jobs.get(key.sk[2:]) if kind == "J" else None
        run_before = self.memory.runs.get(key.sk[2:]) if kind == "R" else None
        known = key in self.memory.outbox
        self.memory.learn(key, item)
        if kind == "J" and item is not None:
            job = from_item(Job, item)
            if job.state == "pending_constraint" and job.unmet is None:
                self._look_at_waiting(job.ref)
        elif kind == "J" and job_before is not None:
            self._look_at_waiting(job_before.ref)  # One that expired or was cancelled has others behind it.
        elif kind == "R":
            self._follow_run(run_before, None if item is None else from_item(Run, item))
        elif kind == "Z" and item is not None:
            self._follow_outbox(key, known)
        self._arm()

    def _follow_run(self, before: Run | None, run: Run | None) -> None:
        if run is None and before is not None:
            for limit in before.limits:
                for ref in self.memory.released(limit):
                    self._look_at_waiting(ref)
            self._look_at_waiting(before.ref)
        elif run is not None and run.state == "submitting" and (before is None or before.attempt != run.attempt):
            self._host.operations.start(self._launch(run))
            self._look_at_waiting(run.ref)

    def _follow_outbox(self, key: Key, known: bool) -> None:
        if not known:
            self._host.operations.start(self._send_out(key))
        elif self.memory.outbox[key].matched:
            self._listeners.pop(key, None)
            self._host.operations.raise_(self._matched[key])
        else:
            self._lane.add(Distribute(key, self._listeners[key], self.shard))  # The next page.

    def _look_at_waiting(self, ref: str) -> None:
        for _ in self.memory.waiting(ref)[:ADMISSIONS_AT_ONCE]:
            self._lane.add(AdmitNext(ref, self.memory))

    # -- time ---------------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        wake = self.memory.next_wake()
        if wake is not None and (self._wake_at is None or wake < self._wake_at):
            self._wake_at = wake
            self._host.call_at(wake, partial(self._due, wake))

    def _due(self, armed: int) -> None:
        if self._wake_at == armed:
            self._wake_at = None
        if self._draining:
            return
        now = self._host.now
        for row in self.memory.take_due(now):
            if row.kind == "S":
                self._lane.add(FireSchedule(row))
            else:
                self._host.operations.start(self._expire(row))
        for ref in self.memory.take_held(now):
            self._look_at_waiting(ref)
        self._arm()

    def _expire(self, row: TimerRow) -> Operation[None]:
        """A time-out that an event in the log could still prevent waits until that was counted."""
        unread = yield from wait_for_watermark(self._host)
        yield from self._look_into_inbox()
        self._lane.add(ExpireEvidence(row, unread))

    def _read_timers(self) -> Operation[list[Item]]:
        """Reads from the very first timer row, overdue ones included: a stall must not lose what it passed (protocol H12)."""
        self.memory.horizon = self._host.now + TIMER_WINDOW_MS
        high = f"T#{keys.instant_text(self.memory.horizon)}#{keys.LAST}"
        return (yield from self._lane.read_range("T#", high))

    def _sweep(self) -> Operation[None]:
        """What a lost poke would have said, and timer rows that come near."""
        next_timers = self._host.now + TIMER_WINDOW_MS // 2
        while True:
            yield from self._host.sleep(SWEEP_MS + self._host.jitter(f"sweep {self.shard}", SWEEP_MS // 5))
            if self._draining:
                return
            self._host.operations.raise_(self._inbox)
            for run_id in list(self.memory.runs):
                self._lane.add(LookAtRun(self.shard, run_id, self._started))
            if self._host.now >= next_timers:
                next_timers = self._host.now + TIMER_WINDOW_MS // 2
                for item in (yield from self._read_timers()):
                    self.memory.learn(Key(str(item["pk"]), str(item["sk"])), item)
                self._arm()

    # -- inbox --------------------------------------------------------------------------------------------------------

    def _pending(self) -> Operation[list[InboxRow]]:
        items = yield from self._lane.read_range("I#", "I#~")
        return [from_item(InboxRow, item) for item in items]

    def _read_inbox(self) -> Operation[None]:
        """Requests and events that ingest put here, of any node; the first round is recovery's."""
        while not self._draining:
            yield from self._look_into_inbox()
            yield self._inbox

    def _look_into_inbox(self) -> Operation[None]:
        if not self._reads_of_inbox:
            self.memory.inbox_gone.clear()
        self._reads_of_inbox += 1
        items = yield from self._lane.read_range("I#", "I#~")
        self._reads_of_inbox -= 1
        fresh: list[tuple[Key, InboxRow]] = []
        for item in items:
            key = Key(str(item["pk"]), str(item["sk"]))
            if key not in self.memory.inbox and key not in self.memory.inbox_gone:
                self.memory.inbox[key] = from_item(InboxRow, item)
                self._lane.view.offer(key, item)
                fresh.append((key, self.memory.inbox[key]))
        self._route(fresh)

    def _route(self, fresh: list[tuple[Key, InboxRow]]) -> None:
        events: dict[str, list[Key]] = {}
        for key, row in fresh:
            if row.kind == "X":
                events.setdefault(keys.schedule_ref(row.namespace, row.name), []).append(key)
        messages = sorted(((key, row) for key, row in fresh if row.kind == "M"), key=lambda each: each[1].origin)
        for key, row in messages:
            self.plane.take_inboxed(row, partial(self._remove_message, key))
        requests = sorted((row for _, row in fresh if row.kind == "Q"), key=lambda row: row.origin)
        for row in requests:
            self._lane.add(ApplyRequest(row, self))
        for ref, rows in events.items():
            self._count(ref, tuple(rows))

    def _count(self, ref: str, rows: tuple[Key, ...]) -> None:
        for first in range(0, len(rows), INBOX_ROWS_PER_DECISION):
            group = rows[first : first + INBOX_ROWS_PER_DECISION]
            self._lane.add(CountEvents(ref, group, partial(self._count, ref)))

    def announce(self, row: InboxRow, receipt: str) -> None:
        """Publishes a stored receipt; only then the inbox row goes, so that a crash in between repeats the receipt."""
        self._host.operations.start(self._announce(row, receipt))

    def _announce(self, row: InboxRow, receipt: str) -> Operation[None]:
        request_id = str(json.loads(receipt)["request_id"])
        yield from self._produce(self._host.holding.receipts_topic, request_id, receipt)
        yield from self._remove_inboxed(row.key(self.shard))

    def _remove_message(self, key: Key) -> Operation[None]:
        yield from self.plane.remove_inboxed(key)
        self.memory.inbox_row_gone(key)

    def _remove_inboxed(self, key: Key) -> Operation[None]:
        """Removes a request's row. Whoever does it: its receipt was stored under the lease, and is published."""
        while isinstance((yield Write(Batch("inbox_done", (Delete(key),)))), Unavailable):
            yield from self._host.sleep(PRODUCE_RETRY_MS)
        self.memory.inbox_row_gone(key)
        self._lane.view.forget([key])

    def _produce(self, topic: str, key: str, value: str) -> Operation[None]:
        """Publishes something of our own; it may repeat, its id tells."""
        while True:
            answer = yield Produce(topic, key.encode(), value.encode())
            if isinstance(answer, Produced):
                return
            assert isinstance(answer, NotProduced)
            if answer.kind == "refused":
                self._host.note("produce_refused", topic=topic, key=key, message=answer.message)
                return
            yield from self._host.sleep(PRODUCE_RETRY_MS)

    # -- outbox -------------------------------------------------------------------------------------------------------

    def _send_out(self, key: Key) -> Operation[None]:
        """A terminal state goes to the schedules that listen and to `tidegate.runs`; neither waits for the other."""
        row = self.memory.outbox[key]
        self._matched[key] = Signal(f"matched {key.sk}")
        self._host.operations.start(self._match(key, row))
        yield from self._produce(self._host.holding.runs_topic, row.run_id, row.record)
        while not self.memory.outbox[key].matched:
            yield self._matched[key]
        while isinstance((yield Write(Batch("outbox_done", (Delete(key),)))), Unavailable):
            yield from self._host.sleep(PRODUCE_RETRY_MS)
        self.memory.outbox.pop(key, None)
        self._matched.pop(key, None)
        self._lane.view.forget([key])

    def _match(self, key: Key, row: OutboxRow) -> Operation[None]:
        event_key = fact_from_json(row.fact).event_key
        matched = yield from self._index.match(self._host, [event_key])
        self._listeners[key] = matched[event_key]
        if not row.matched:
            self._lane.add(Distribute(key, matched[event_key], self.shard))

    # -- runs ---------------------------------------------------------------------------------------------------------

    def _adopt(self, run: Run) -> Operation[None]:
        """A predecessor's run: look it up under its name, then go on where it stands."""
        if run.ended_at is not None:
            self._lane.add(LookAtRun(self.shard, run.id, self._started))
            return
        since = self._host.now
        while (run.id, run.attempt) not in self._launching and self._is_open(run):
            found = yield Lookup(run.id, run.attempt, run.host, run.boot_id)
            assert isinstance(found, LookedUp)
            if found.where == "found":
                if run.cancel_requested:
                    self._host.tell(Cancel(run.id, run.attempt))
                if run.external_id is None:
                    submitted = Submitted(found.external_id or "", found.host or "", found.boot_id or "")
                    self._lane.add(MarkSubmitted(self.shard, run.id, run.attempt, submitted, self._host.holding.node))
                yield from self._watch(run)
                return
            if found.where == "absent" and run.state == "submitting":
                yield from self._launch(run)
                return
            if found.where == "absent":
                # Submitted or started, and nothing of it is left where the launcher can see all there is.
                self._lane.add(RunGone(self.shard, run.id, run.attempt, Gone(None, message="nothing of it is left")))
                return
            if self._host.now - since >= PROBE_GAP_MS:
                self._lane.add(MarkLost(self.shard, run.id, run.attempt))
                since = self._host.now
            yield from self._host.sleep(SWEEP_MS)

    def _launch(self, run: Run) -> Operation[None]:
        """Hands the attempt to the launcher until it is taken or refused; names and the gate absorb a repeat."""
        if (run.id, run.attempt) in self._launching:
            return
        self._launching.add((run.id, run.attempt))
        if run.not_before > self._host.now:
            yield from self._host.sleep(run.not_before - self._host.now)
        entries = yield from self._manifest(run)
        pause = SUBMIT_RETRY_MS
        while self._is_open(run) and not self._draining:
            answer: Submitted | SubmitFailed | NotSubmitted = yield Submit(launch_order(run, entries))
            match answer:
                case Submitted():
                    self._lane.add(MarkSubmitted(self.shard, run.id, run.attempt, answer, self._host.holding.node))
                    yield from self._watch(run)
                    return
                case SubmitFailed(error_class, message):
                    self._lane.add(RejectRun(self.shard, run.id, run.attempt, error_class, message))
                    return
                case NotSubmitted(message):
                    self._host.note("not_submitted", run_id=run.id, attempt=run.attempt, message=message)
                    yield from self._host.sleep(pause)
                    pause = min(2 * pause, SUBMIT_RETRY_LAST_MS)

    def _manifest(self, run: Run) -> Operation[list[dict[str, object]]]:
        if run.evidence_id is None:
            return []
        low, high = chunk_range(run.evidence_id)
        items = yield from self._lane.read_range(low, high)
        return merged_entries([str(item["entries"]) for item in items[: run.chunks]])

    def _watch(self, run: Run) -> Operation[None]:
        gone = yield Watch(run.id, run.attempt)
        assert isinstance(gone, Gone)
        self._lane.add(RunGone(self.shard, run.id, run.attempt, gone))

    def _is_open(self, run: Run) -> bool:
        known = self.memory.runs.get(run.id)
        return known is not None and known.attempt == run.attempt

    def _started(self, run: Run) -> None:
        """The gate let the run's program pass: tell who listens to `tidegate.runs` (best effort; the end is certain)."""
        before = self.memory.runs.get(run.id)
        if before is None or before.attempt != run.attempt or before.state == run.state:
            return  # Seen before another decision of the same transaction moved it on.
        if run.state == "running":
            self.memory.runs[run.id] = run
            at = run.started_at or self._host.now
            record = run_record(run, RunState.RUNNING, at)
            self._host.tell(Produce(self._host.holding.runs_topic, run.id.encode(), record.encode()))
