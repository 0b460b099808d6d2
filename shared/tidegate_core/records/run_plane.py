"""Records of the run plane: schedule state, definition, job, run, evidence, inbox, outbox, ledger (DESIGN 6, 7)."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from tidegate_core.store import keys
from tidegate_core.store.values import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """The one mutable item of a schedule, at most 1 KB.

    Attributes:
        status: `active`, `suspended` or `deleted` (a tombstone).
        incarnation: Given when the name is created, new after delete and re-create: ids never repeat.
        version: Counts 1, 2, 3 ... within the name, tombstones included.
        generation: Raised by every request that ends what is pending; jobs and admissions carry it.
        position: Text of the position of the last applied request; older requests are superseded.
        activated_at: Instant from which time triggers count and before which runs do not.
        next_nominal: Next instant of a time trigger; moves by compare-and-set from the last scheduled instant.
        fired_through: Latest instant of a time trigger that was made in this incarnation; none is ever made twice.
        seals: Evidence opened so far; numbers the jobs of event triggers.
        made_at: When the last job of a trigger with `at_least_every` was made, or a reminder found nothing to make one of;
            `next_nominal` is its next reminder.
        next_tick: Next instant of a composite's time leaves; a timer row of kind `E` stands there.
        ticked: How many ticks of each of them have been since the version was applied, for `max_fires`.
        gathered: Cursor of the catch-up: how many instants were walked that no occurrence stands for yet; `next_nominal` is
            where it goes on.
        gathered_from, gathered_through: The first and the last of them.
        fires: Instants of a time trigger that were walked since the version was applied, for `max_fires`.
        gathered_as: What is to become of them (`Fate`).
        alone, alone_since: Instants that have jobs of their own although they were missed, and the begin of the span.
        missed_from, missed_until, missed_as: What this schedule itself missed, and is to make up for; None = nothing.
        expires_at: Only of a tombstone whose name never existed: the version of others is never given again.
        mode: How it is suspended, while it is (SEMANTICS 10); `standing.py` says what that lets happen.
        suspended_at: Since when.
        stopped_by: Who asked for it, empty where nobody was named; None = nobody did: it is active, or began suspended.
        stopped_for: Why, as far as it was said.
        until: When it is resumed by itself; a timer row of kind `U` stands there.
        stopped_ms: How long the clocks of time-outs have stood still in all earlier suspensions.
        last_stop: Begin and end of the last of those.
        pauses: Begin and end of the last suspensions that are over, of any mode: begin, end, begin, end ...
        kept_from: Oldest generation whose pending jobs go on; None = only the present one.
        carried: Stretches of versions whose pending jobs and evidence are bound to the last one of the stretch: first, last,
            first, last ...
        gone: `<ns>/<name>` of the schedules that were deleted since the trigger listened to them: it does without.
        shedding: What a resume leaves of the backlog (`last`, `coalesce`, `none`), while it is being ended; until then
            nothing is admitted.
    """

    namespace: str
    name: str
    status: str
    incarnation: str
    version: int
    generation: int
    position: str
    activated_at: int = 0
    next_nominal: int | None = None
    fired_through: int = 0
    seals: int = 0
    made_at: int = 0
    next_tick: int | None = None
    ticked: tuple[int, ...] = ()
    gathered: int | None = None
    gathered_from: int = 0
    gathered_through: int = 0
    fires: int = 0
    gathered_as: str | None = None
    alone: int | None = None
    alone_since: int | None = None
    missed_from: int | None = None
    missed_until: int | None = None
    missed_as: str | None = None
    spec_hash: str = ""
    changed_at: int = 0
    reason: str | None = None
    actor: str | None = None
    expires_at: int | None = None
    mode: str = "drop"
    suspended_at: int = 0
    stopped_by: str | None = None
    stopped_for: str | None = None
    until: int | None = None
    stopped_ms: int = 0
    last_stop: tuple[int, ...] = ()
    pauses: tuple[int, ...] = ()
    kept_from: int | None = None
    carried: tuple[int, ...] = ()
    shedding: str | None = None
    gone: tuple[str, ...] = ()

    def key(self, shard: int) -> Key:
        return keys.schedule_state(shard, self.namespace, self.name)

    def has_due(self, now: int) -> bool:
        """Whether some instant has come that no occurrence stands for yet."""
        return self.next_nominal is not None and (self.next_nominal <= now or self.gathered is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One immutable version of a schedule: its spec as canonical JSON."""

    namespace: str
    name: str
    version: int
    spec: str
    created_at: int

    def key(self, shard: int) -> Key:
        return keys.definition(shard, self.namespace, self.name, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An occurrence in the making, once its trigger is satisfied (`pending_constraint`) until its run has started or ended.

    Attributes:
        id: Also the id of the run that comes of it.
        trigger: `time`, `events` or `manual`.
        nominal: The instant at which it should happen; for events the instant of satisfaction.
        deadline: Pending time-out; where it stands for others that waited, the earliest of theirs.
        queued_since: Since when its place in queues counts, where it took the place of others; None = since it was satisfied.
        evidence_id: Where its entries lie, or None.
        evidence_correlation: Under which its evidence is kept while it absorbs; `correlation` may come from upstream.
        chunks: Chunks sealed into it; None while it still absorbs.
        upstream: JSON of the upstream run's facts for program-status triggers.
        unmet: All that stood in its way at the last look whose reason codes were new, as JSON.
        asked: Keys (`pk|sk`) of its waiter rows, in the queues of the shared limits that it waits for.
        covered: Instants that it stands for, its nominal the last of them: of an outage, or of jobs that were merged into
            it; None = only for its own.
        covered_from: The first of them.
        stopped: How long the schedule's clocks had stood still, in ms, when `deadline` was reckoned.
        free_attempts: Attempts of it that a suspend took back before the gate: they cost no try.
        alerted: True once it was told that its pending time-out has passed and it waits on.
        forced: What it is admitted in spite of since then, in the form of `unmet`.
        catch_up: True when it makes up for an instant that was missed: those run one at a time.
        in_turn: Of one that makes up for an instant: True once no other one was open; `deadline` counts from then on.
        force_overlap: True when whoever asked for it wants it beside what runs.
        missing: What had not come when evidence fired with what was there, in words.
    """

    id: str
    namespace: str
    name: str
    incarnation: str
    version: int
    generation: int
    state: str
    trigger: str
    nominal: int
    satisfied_at: int
    deadline: int
    interval_start: int | None = None
    interval_end: int | None = None
    correlation: str | None = None
    evidence_id: str | None = None
    chunks: int | None = None
    upstream: str | None = None
    unmet: str | None = None
    evidence_correlation: str = ""
    attempt: int = 1
    asked: tuple[str, ...] = ()
    covered: int | None = None
    covered_from: int | None = None
    stopped: int = 0
    free_attempts: int = 0
    alerted: bool | None = None
    forced: str | None = None
    catch_up: bool | None = None
    force_overlap: bool | None = None
    missing: tuple[str, ...] = ()
    queued_since: int | None = None
    in_turn: bool | None = None

    def key(self, shard: int) -> Key:
        return keys.job(shard, self.id)

    @property
    def waits_since(self) -> int:
        """What its place in queues goes by: its own waiting, or that of those whose place it took."""
        return self.satisfied_at if self.queued_since is None else self.queued_since

    @property
    def times_out(self) -> bool:
        """Whether its deadline counts by now."""
        return not self.catch_up or bool(self.in_turn)

    @property
    def stands_for(self) -> int:
        """Number of its instants."""
        return 1 if self.covered is None else self.covered

    @property
    def begins(self) -> int:
        """The first of its instants."""
        return self.nominal if self.covered_from is None else self.covered_from

    @property
    def ref(self) -> str:
        return keys.schedule_ref(self.namespace, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A launched job: written by the owner, but `start`, `outputs`, `finished` and close are ownerless single writes.

    Attributes:
        attempt: The current attempt; the gate admits no other.
        state: `submitting`, `submitted`, `running`, or terminal (`succeeded` ... `closed`).
        limits: Partition and sort keys (`pk|sk`) of the limits whose permit it holds, or of the permit's own item.
        queued: True when somebody may wait behind it: it was admitted out of a shared limit's queue.
        order: JSON of program type, file, args, conf.
        driver: UUID in the memory of the one driver that passed the gate.
        ended_at: When the end was observed or the run was closed; set once.
        disposition: `<disposition>/<reason>` for the ledger when the run was closed before the gate.
        start_by: The launcher must have taken it by then (SEMANTICS 13: 1 h); once it has, the gate must have been passed by
            then (15 min).
        not_before: A further submission of an attempt that died before the gate waits until then.
        remembered: True when its schedule's past counts it (`PastRuns`), so that its end has to be counted as well.
        forced: What did not hold when its job's pending time-out had it admitted all the same; None: everything held.
        retries: Further attempts after a program that failed, those that cost a try.
        failure: JSON of how the last attempt ended, while the run waits for, or makes, the next one.
        submissions_before: Attempts, those that cost no try left out, before the program's present try.
        covered, covered_from, free_attempts, catch_up, missing: As of its job.
        told: True once its start was told to those who listen.
    """

    id: str
    namespace: str
    name: str
    incarnation: str
    version: int
    generation: int
    attempt: int
    state: str
    trigger: str
    nominal: int
    order: str
    admitted_at: int
    start_by: int
    satisfied_at: int = 0
    interval_start: int | None = None
    interval_end: int | None = None
    correlation: str | None = None
    evidence_id: str | None = None
    chunks: int | None = None
    upstream: str | None = None
    limits: tuple[str, ...] = ()
    node: str | None = None
    external_id: str | None = None
    host: str | None = None
    boot_id: str | None = None
    driver: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    outcome: str | None = None
    exit_code: int | None = None
    reason: str | None = None
    error_class: str | None = None
    outputs: str | None = None
    cancel_requested: bool = False
    disposition: str | None = None
    not_before: int = 0
    queued: bool | None = None
    expires_at: int | None = None
    covered: int | None = None
    covered_from: int | None = None
    free_attempts: int = 0
    remembered: bool | None = None
    forced: str | None = None
    catch_up: bool | None = None
    missing: tuple[str, ...] = ()
    told: bool | None = None
    retries: int = 0
    failure: str | None = None
    submissions_before: int = 0

    def key(self, shard: int) -> Key:
        return keys.run(shard, self.id)

    @property
    def ref(self) -> str:
        return keys.schedule_ref(self.namespace, self.name)

    @property
    def order_document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.order)
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLimit:
    """A schedule's own limit: lies in its shard, so only the owner writes it.

    Attributes:
        holders: Runs that hold a permit, at most 16.
    """

    namespace: str
    name: str
    holders: tuple[str, ...] = ()

    def key(self, shard: int) -> Key:
        return keys.own_limit(shard, self.namespace, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Evidence of the one unsealed job of a (schedule, correlation): counters only, entries lie in chunk rows.

    Attributes:
        id: Also the id of the job that it becomes.
        correlation: Key of its group: the value that it is paired by, where that is all that tells groups apart.
        paired_by: That value, where the key says more.
        counts: What each leaf has counted, in its unit.
        chunks: Chunk rows written so far.
        first_at: Append time of its first entry.
        deadline: Instant of its timer row, or None: then something becomes of it, whatever it is (`triggers/latches.py`).
        job: True once the trigger is satisfied and the job exists; it absorbs until admission.
        stopped: As of a job.
    """

    id: str
    namespace: str
    name: str
    incarnation: str
    version: int
    correlation: str
    counts: tuple[int, ...]
    chunks: int
    first_at: int
    deadline: int | None = None
    job: bool = False
    stopped: int = 0
    paired_by: str | None = None

    @property
    def value(self) -> str | None:
        """The value that it is paired by."""
        return (self.correlation if self.paired_by is None else self.paired_by) or None

    def key(self, shard: int) -> Key:
        return keys.evidence(shard, self.namespace, self.name, self.correlation)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceChunk:
    """Entries that one transaction counted, as JSON: a list of {leaf, key, ...} (at most 64 KB). Write-once.

    No TTL: evidence may stay open for years. A timer row of kind `C` removes them after their end.
    """

    evidence_id: str
    chunk: int
    entries: str

    def key(self, shard: int) -> Key:
        return keys.evidence_chunk(shard, self.evidence_id, self.chunk)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerRow:
    """A lower bound: whoever reads it decides again.

    Attributes:
        kind: `S` a schedule's next nominal, `E` a deadline of evidence, `C` the removal of ended evidence's chunks, `U`
            the end of a suspension. (Open jobs and runs are few enough to be held in memory whole: their deadlines derive
            from their own rows.)
        ref: `<ns>/<name>` for `S` and `U`, `<ns>/<name>#<correlation hash>` for `E` (or `#at-least`, `#next-tick`), the evidence's id for
            `C`.
        detail: For `E` the group's key, which `ref` only hashes (or the generation that is reminded); for `C` the number of chunks.
    """

    at: int
    kind: str
    ref: str
    detail: str | None = None

    def key(self, shard: int) -> Key:
        return keys.timer(shard, self.at, self.kind, self.ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRow:
    """Something for the owner of a shard, put there by whoever read it from Kafka, in the transaction of its cursor.

    Attributes:
        kind: `Q` a request of the run plane, `M` one about a message, `X` events matched for one schedule, `G` a schedule that
            it waits for is gone.
        origin: Text of the position of the (first) record.
        body: The request in its canonical form, or a JSON list of matched events.
        payload: Of a message, as it is delivered: its bytes, because as JSON they could outgrow an item. `body` is the
            request without it then.
    """

    namespace: str
    name: str
    kind: str
    origin: str
    body: str
    payload: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes of what it carries."""
        return len(self.body.encode()) + len(self.payload or b"")

    @property
    def request(self) -> bytes:
        """The request as a record's value."""
        if self.payload is None:
            return self.body.encode()
        document = {**json.loads(self.body), "payload_base64": base64.b64encode(self.payload).decode()}
        return json.dumps(document, ensure_ascii=False).encode()

    def key(self, shard: int) -> Key:
        return keys.inbox(shard, self.namespace, self.name, self.kind, self.origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """A terminal state on its way to those who listen: event source for `run_status`, record for `tidegate.runs`.

    Also a schedule that is gone: `run_id` is its incarnation then, `attempt` 0, `state` `deleted`.

    Attributes:
        record: JSON of the record for `tidegate.runs`; empty where nothing goes there.
        fact: JSON of the fact that triggers see.
        started: When it had passed the gate, where that was not told before its end.
        page: `<ns>/<name>` of the last schedule that has its inbox row; listeners may come and go between two pages.
        matched: All have.
        given_up: Why no further attempt of a run follows, where one was wanted: it gets a dead letter. None = it gets none.
        error_class: Of such a run.
    """

    run_id: str
    attempt: int
    state: str
    record: str
    fact: str
    started: int | None = None
    page: str = ""
    matched: bool = False
    given_up: str | None = None
    error_class: str | None = None

    def key(self, shard: int) -> Key:
        return keys.outbox(shard, self.run_id, self.attempt, self.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What became of one occurrence. Written once, in the transaction that decides it; kept 90 days.

    Attributes:
        disposition: launched, coalesced, skipped, expired or cancelled.
        reason: `<reason>` of `skipped/<reason>` and so on; empty for launched.
        at: When it was decided.
        state: Final state of the run of a launched occurrence.
        covered: Instants that this entry stands for, `nominal` the last of them: of an outage (those before it have no
            entry), or of jobs that were merged into it (each has its own, `coalesced`); None = only for its own.
        covered_from: The first of them.
        forced: As of the run.
    """

    namespace: str
    name: str
    incarnation: str
    version: int
    job_id: str
    trigger: str
    nominal: int
    disposition: str
    reason: str
    at: int
    state: str | None = None
    correlation: str | None = None
    interval_start: int | None = None
    interval_end: int | None = None
    admitted_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    node: str | None = None
    detail: str | None = None
    expires_at: int | None = None
    covered: int | None = None
    covered_from: int | None = None
    forced: str | None = None

    def key(self, shard: int) -> Key:
        return keys.ledger(shard, self.namespace, self.name, self.nominal, self.job_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """One leaf of a schedule, under the event key that it listens to; one row for each of its generations.

    Attributes:
        vector: Id of the shared item with the first offset that counts per topic partition; None for run_status.
        activated_at: Runs count that were admitted not earlier than this minus 1 s.
        asked_at: Append time of the request; earlier events of topic partitions that the vector does not name do not count.
        starts: True where starts of runs count, not only their ends.
    """

    event_key: str
    namespace: str
    name: str
    incarnation: str
    generation: int
    leaf: int
    shard: int
    activated_at: int
    vector: str | None = None
    asked_at: int = 0
    starts: bool | None = None

    def key(self) -> Key:
        activation = (self.incarnation, self.generation, self.leaf, self.vector)
        return keys.index_row(self.event_key, self.namespace, self.name, *activation)
