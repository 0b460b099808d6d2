"""Requests on wide controls, where the item lies: the owner of their home shard moves it, then waits for all shards (DESIGN 6).

The item and an answer that is not settled yet move in one transaction; the final receipt follows when each shard's lease says
that it has done its part. Until then the request stays in the inbox: a successor finds the answer and goes on waiting. The
next control need not wait for this one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from tidegate_core.commands.apply_request import ApplyRequest
from tidegate_core.commands.end_pending import LISTED_MAX
from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.request_base import ControlRequest, ControlResume, ControlSuspend
from tidegate_core.language.requests.requests import Request
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import Problem
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read, WakeUp
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.receipt import StoredReceipt, expiry, subject_of
from tidegate_core.rows.run import Run
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, Scope, ScopeSuspensions, StoredSuspensions, stored_bytes
from tidegate_core.rows.store_operations import Batch, Key, Put
from tidegate_core.runs.run_lifecycle import BEFORE_GATE
from tidegate_core.shard.events.end_offsets import as_vector, read_end_offsets
from tidegate_core.shard.events.subscription_index import vector_item
from tidegate_core.shard.jobs import LEDGER_DAYS
from tidegate_core.writes.fencing import carried_by
from tidegate_core.writes.unit_of_work import UnitOfWork

SCOPES_MAX = 250
"""Namespaces that may be suspended at once; of 1.4 KB each at most they take 350 KB of the item."""
OVER_MAX = 250
"""Scopes that go on and are remembered beside them, as far as `ITEM_BYTES` has room: some 300 bytes each is usual."""
SCOPE_BYTES_MAX = 1_500
"""Above the largest one."""
ITEM_BYTES = 385_000
"""Of all scopes: the item stays below DynamoDB's 400 KB."""
TEXT_CHARACTERS_MAX = 100
"""Of actor and reason, beside each scope; the request in the topic has all of them."""
TEXT_BYTES_MAX = 400
"""The same, as JSON: a control character takes six."""
SCOPE_KEPT_MS = (LEDGER_DAYS + 1) * 86_400_000
"""A scope that goes on is remembered for as long as somebody may ask what became of its spans (the audit, `why`): longer than the requests
topic keeps what could be older than its last request."""
VECTOR_DAYS = 30
CARRIED_OUT = frozenset({ReceiptStatus.ACCEPTED, ReceiptStatus.UNCHANGED})
"""Answers that say that all is stopped, or goes on: also one that changes nothing waits for the change before it."""
CHECK_MS = 250
"""How often the leases that are behind are read while a control waits for them."""


@dataclass(frozen=True, slots=True)
class ApplyScopeSuspension(ApplyRequest):
    """Applies a request on wide controls; what it comes to is announced once all shards have done their part.

    Attributes:
        spread: Waits for them.
        done: Removes the inbox row of a repeat, whose answer is still to come under its id.
    """

    spread: SuspensionRollout = field(kw_only=True)
    done: Callable[[InboxRow], None] = field(kw_only=True)

    @property
    def ordering_key(self) -> str | None:
        """With nothing: a later request on a scope supersedes, and a stop must not wait for what a resume waits for."""
        return None

    def run(self, lane: ShardWriter) -> Operation[None]:
        body = yield from self._receipt_once_told(lane)
        receipt = Receipt.model_validate_json(body)
        if _is_settled(lane, receipt):
            self.announce(self.row, body)
            return
        for shard in range(lane.host.holding.topic_partitions):
            lane.host.emit(WakeUp(shard, controls=True))  # Holder p has shard p.
        if not self.spread.begin(PendingRollout(self.row, receipt, self.announce)):
            self.done(self.row)

    def _apply(self, lane: ShardWriter, request: Request, request_id: str, outcome: Outcome) -> Operation[None]:
        assert isinstance(request, ControlSuspend | ControlResume)
        position = Position.parse(self.row.origin)
        if outcome.receipt is None:
            yield from lane.decide_alone(MoveSuspensions(request, request_id, position, None, outcome))
        if outcome.receipt is None:
            vector = yield from _end_offsets(lane, self.row, request.namespace, self.arrived)
            yield from lane.decide_alone(MoveSuspensions(request, request_id, position, vector, outcome))


def _is_settled(lane: ShardWriter, receipt: Receipt) -> bool:
    """The stored answer says so; a refusal need not be stored."""
    key = keys.receipt(lane.shard, receipt.namespace, receipt.request_id)
    item = lane.view.item(key) if lane.view.knows(key) else None
    return receipt.status not in CARRIED_OUT or item is None or from_item(StoredReceipt, item).settled


def _end_offsets(lane: ShardWriter, row: InboxRow, namespace: str | None, arrived: int) -> Operation[str]:
    """Stores the log's ends, read after the request arrived; before the item names them."""
    ends = yield from read_end_offsets(lane.host, None if namespace is None else [namespace], arrived)
    vector_id, key, item = vector_item(f"controls {row.origin}", as_vector(ends))
    expiring = {**item, "expires_at": expiry(lane.host.now, VECTOR_DAYS)}
    yield from lane.host.write_for_good(Batch("vector", (Put(key, expiring),)))
    return vector_id


# -- the item ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MoveSuspensions:
    """Moves the item by compare-and-set, with the answer beside it; the answer is settled where nothing is waited for.

    Attributes:
        vector: Of the log's ends, for a resume that ends a span; None: first look, and where it turns out to be one there is no
            answer yet.
    """

    request: ControlRequest
    request_id: str
    position: Position
    vector: str | None
    outcome: Outcome
    stale: tuple[Key, ...] = (keys.SUSPENSIONS_KEY,)
    name: str = "move_controls"

    @property
    def about(self) -> str:
        return self.request.namespace or self.request.scope

    def decide(self, unit: UnitOfWork, now: int) -> None:
        stored = unit.record(StoredSuspensions, keys.SUSPENSIONS_KEY)
        before = NO_SUSPENSIONS if stored is None else stored.controls
        status, after = next_suspensions(before, self.request, self.position, self.vector)
        if status is None:
            return
        errors: tuple[Problem, ...] = ()
        if sum(scope.is_suspended and scope.namespace is not None for scope in after.scopes) > SCOPES_MAX:
            hint = "suspend the whole system, or resume others first"
            errors = (Problem("namespace", f"would be one of more than {SCOPES_MAX} that are suspended", hint),)
            status, after = ReceiptStatus.REJECTED, before
        if after is not before:
            unit.put(StoredSuspensions.of(after), keys.SUSPENSIONS_KEY)
        receipt = Receipt.model_construct(
            request_id=self.request_id,
            status=status,
            namespace=self.request.namespace,
            version=after.version or None,
            errors=errors,
            at=now,
        )
        answer(unit, self.outcome, receipt, now, settled=status not in CARRIED_OUT or not after.version)


def next_suspensions(
    before: ScopeSuspensions, request: ControlRequest, position: Position, vector: str | None
) -> tuple[ReceiptStatus | None, ScopeSuspensions]:
    """Returns what a request makes of the controls, and how it is answered; None: it needs the log's ends, to end a span."""
    known = before.scope(request.namespace)
    if known is not None and known.position > position.text():
        return ReceiptStatus.SUPERSEDED, before
    scope = replace(
        known or Scope(namespace=request.namespace, position=""),
        position=position.text(),
        actor=_shortened(request.actor),
        reason=_shortened(request.reason),
    )
    version, status = before.version, ReceiptStatus.UNCHANGED
    if isinstance(request, ControlSuspend) and not scope.is_suspended:
        version, status = version + 1, ReceiptStatus.ACCEPTED
        scope = scope.suspended(position.append_time, version)
    elif isinstance(request, ControlResume) and scope.is_suspended:
        if vector is None:
            return None, before
        version, status = version + 1, ReceiptStatus.ACCEPTED
        scope = scope.resumed(position.append_time, vector)
    others = [each for each in before.scopes if each.namespace != request.namespace]
    return status, ScopeSuspensions(version=version, scopes=(*_worth_keeping(others, position.append_time), scope))


def _worth_keeping(scopes: list[Scope], now: int) -> list[Scope]:
    """Drops what is long over; when there are too many, those first that never were suspended, then those that have been over for longest.

    What goes on has room of its own: a shard may not have heard of its resume, and only its span tells what is no miss.
    """
    over = sorted((scope for scope in scopes if not scope.is_suspended), key=lambda scope: scope.position, reverse=True)
    recent = [scope for scope in over if Position.parse(scope.position).append_time > now - SCOPE_KEPT_MS]
    recent.sort(key=lambda scope: not scope.spans)
    suspended = [scope for scope in scopes if scope.is_suspended]
    left = ITEM_BYTES - sum(map(stored_bytes, suspended))
    sizes = accumulate(map(stored_bytes, recent[:OVER_MAX]))
    kept = [scope for scope, size in zip(recent, sizes, strict=False) if size <= left]
    return [*suspended, *reversed(kept)]


def forgotten_before(controls: ScopeSuspensions) -> int:
    """Returns an instant before which scopes may have been suspended that had to be dropped; 0 where none was.

    Those that were too many may be suspended again by now, and are in the item all the same.
    """
    asked_at = [Position.parse(scope.position).append_time for scope in controls.scopes]
    over = [at for at, scope in zip(asked_at, controls.scopes, strict=True) if not scope.is_suspended]
    has_no_room = sum(map(stored_bytes, controls.scopes)) > ITEM_BYTES - SCOPE_BYTES_MAX
    too_old = max(asked_at, default=0) - SCOPE_KEPT_MS
    had_to_drop = has_no_room or len(controls.scopes) >= OVER_MAX
    return max(0, too_old, min(over, default=max(asked_at, default=0)) if had_to_drop else 0)


def _shortened(text: str | None) -> str | None:
    if text is None:
        return None
    short = text[:TEXT_CHARACTERS_MAX]
    while len(json.dumps(short, ensure_ascii=False).encode()) > TEXT_BYTES_MAX + 2:
        short = short[:-1]
    return short


# -- all shards -------------------------------------------------------------------------------------------------------------


class PendingRollout(NamedTuple):
    """A control whose final answer waits until all shards have done their part."""

    row: InboxRow
    receipt: Receipt
    announce: Callable[[InboxRow, str], None]

    @property
    def version(self) -> int:
        assert self.receipt.version is not None
        return self.receipt.version


class SuspensionRollout:
    """All controls whose answers wait; one per home shard.

    One look at the leases serves them all: where a shard has no owner senders ask again for hours, by the same request and by others.
    """

    def __init__(self, lane: ShardWriter) -> None:
        self._lane = lane
        self._waiting: dict[Key, PendingRollout] = {}
        self._done: dict[int, int] = {}
        self._looks = False

    def begin(self, spreading: PendingRollout) -> bool:
        """Returns False for a repeat of one that waits: its answer will be that one's, and bears its id."""
        receipt = spreading.receipt
        key = keys.receipt(self._lane.shard, receipt.namespace, receipt.request_id)
        if key in self._waiting:
            return False
        self._waiting[key] = spreading
        if not self._looks:
            self._looks = True
            self._lane.host.start_safely("spread", f"shard {self._lane.shard}", self._look())
        return True

    def _look(self) -> Operation[None]:
        """Looks until nobody waits, and has those settled for which nothing is left to be waited for."""
        try:
            while self._waiting:
                done = yield from self._done_by_all(max(each.version for each in self._waiting.values()))
                through = [key for key, each in self._waiting.items() if each.version <= done]
                for each in [self._waiting.pop(key) for key in through]:
                    self._lane.host.start_safely("spread", each.receipt.request_id, _settle(self._lane, each))
                if self._waiting:
                    yield from self._lane.host.sleep(CHECK_MS)
        finally:
            self._looks = False

    def _done_by_all(self, wanted: int) -> Operation[int]:
        """Returns the version of which all shards have done their part, as far as that one; only those that are behind it are asked."""
        shards = range(self._lane.host.holding.shards)
        behind = {shard: keys.lease(shard) for shard in shards if self._done.get(shard, 0) < wanted}
        if behind:
            answer = yield from self._lane.host.read_for_good(Read(tuple(behind.values())))
            assert isinstance(answer, Items)
            leases = {shard: answer.found.get(key) for shard, key in behind.items()}
            self._done |= {shard: 0 if lease is None else carried_by(lease).done for shard, lease in leases.items()}
        return min(wanted, *(self._done[shard] for shard in shards))


def _settle(lane: ShardWriter, spreading: PendingRollout) -> Operation[None]:
    """Stores and announces the final answer."""
    row, receipt, announce = spreading
    running: list[str] = []
    if isinstance(parse_request(row.body.encode()), ControlSuspend):
        for shard in range(lane.host.holding.shards):
            # All is stopped by now: one shard whose runs cannot be read costs the answer those, and the log says so.
            listing = _list_running(lane, shard, receipt.namespace, running)
            yield from lane.host.safely("list_running", keys.shard_pk(shard), listing)
            if len(running) >= LISTED_MAX:
                break
    lane.add(SettleSuspension(row, receipt, tuple(running[:LISTED_MAX]), announce))


def _list_running(lane: ShardWriter, shard: int, namespace: str | None, running: list[str]) -> Operation[None]:
    """Adds the scope's runs of a shard that are past the start gate: they go on (SEMANTICS 10)."""
    items = yield from lane.read_range(*keys.prefix_range(keys.RUN_PREFIX), keys.shard_pk(shard))
    runs = [from_item(Run, item) for item in items]
    running += [
        run.id
        for run in runs
        if run.state not in BEFORE_GATE and run.ended_at is None and namespace in (None, run.namespace)
    ]


@dataclass(frozen=True, slots=True)
class SettleSuspension:
    """Stores the final answer; one that is stored already is announced as it is. What was stored first may have expired: a shard had no owner
    for that long.
    """

    row: InboxRow
    receipt: Receipt
    running: tuple[str, ...]
    announce: Callable[[InboxRow, str], None]
    stale: tuple[Key, ...] = ()
    name: str = "settle_control"

    @property
    def about(self) -> str:
        return self.receipt.request_id

    def decide(self, unit: UnitOfWork, now: int) -> None:
        key = keys.receipt(unit.shard, self.receipt.namespace, self.receipt.request_id)
        stored = unit.record(StoredReceipt, key)
        if stored is not None and stored.settled:
            body = stored.body
        else:
            outcome = Outcome(subject_of(parse_request(self.row.body.encode())), self.receipt)
            answer(unit, outcome, self.receipt.model_copy(update={"running": self.running, "at": now}), now)
            assert outcome.receipt is not None
            body = outcome.receipt.to_json().decode()
        unit.after(lambda: self.announce(self.row, body))
