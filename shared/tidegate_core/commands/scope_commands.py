"""Scope suspensions as a cluster object: requests that suspend, or resume, a namespace or the whole system.

`ApplyClusterObject` runs the requests; this module decides them. A request is carried out once every shard has acknowledged the new version
in its lease (`shard_suspension.py`). The final receipt of a suspend lists the runs that go on: those past the start gate.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

from tidegate_core.commands.cluster_object import ClusterObjectKind, Facts, Transition, store_end_offsets
from tidegate_core.commands.end_pending import LISTED_MAX
from tidegate_core.commands.roll_out import PendingReceipt, RollOut
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.request_base import ControlRequest, ControlResume, ControlSuspend
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import Problem
from tidegate_core.rows import keys
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.run import Run
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, Scope, ScopeSuspensions, StoredSuspensions, stored_bytes
from tidegate_core.rows.store_operations import Item
from tidegate_core.runs.run_lifecycle import BEFORE_GATE
from tidegate_core.shard.events.end_offsets import as_vector, read_end_offsets
from tidegate_core.shard.jobs import LEDGER_DAYS
from tidegate_core.writes.fencing import carried_by

SCOPES_MAX = 250
"""Namespaces that may be suspended at once. A scope has 1.4 KB at most, so they take 350 KB of the item."""
OVER_MAX = 250
"""Resumed scopes that the item keeps, as far as `ITEM_BYTES` has room; most take some 300 bytes."""
SCOPE_BYTES_MAX = 1_500
"""An upper bound for one stored scope."""
ITEM_BYTES = 385_000
"""Bytes of all scopes: the item stays below DynamoDB's 400 KB."""
TEXT_CHARACTERS_MAX = 100
"""Characters of actor and reason that a scope keeps; the request in the topic has the whole texts."""
TEXT_BYTES_MAX = 400
"""Bytes of either text as JSON: a control character takes six."""
SCOPE_KEPT_MS = (LEDGER_DAYS + 1) * 86_400_000
"""How long the item keeps a resumed scope: as long as the audit and `why` may need its spans. The requests topic keeps no request that long
that is older than the scope's last one."""
VECTOR_DAYS = 30


class ScopeSuspensionKind(ClusterObjectKind[ScopeSuspensions]):
    """The suspensions of all scopes, as one item."""

    name = ControlRequest.CLUSTER_OBJECT
    label = "move_controls"
    empty = NO_SUSPENSIONS
    record = StoredSuspensions
    keeps_order = False
    """A later request on a scope supersedes the earlier one, and a stop must not wait for the end offsets of a resume."""

    def value_of(self, stored: StoredSuspensions) -> ScopeSuspensions:
        return stored.controls

    def about(self, request: ControlRequest) -> str:
        return request.namespace or request.scope

    def transition(
        self, before: ScopeSuspensions, request: ControlRequest, position: Position, facts: Facts
    ) -> Transition[ScopeSuspensions]:
        assert not isinstance(facts.end_offsets, Problem)
        status, after = next_suspensions(before, request, position, facts.end_offsets)
        problems: tuple[Problem, ...] = ()
        if sum(scope.is_suspended and scope.namespace is not None for scope in after.scopes) > SCOPES_MAX:
            hint = "suspend the whole system, or resume others first"
            problems = (Problem("namespace", f"would be one of more than {SCOPES_MAX} that are suspended", hint),)
            status, after = ReceiptStatus.REJECTED, before
        return Transition(status=status, after=after, version=after.version or None, problems=problems)

    def read_end_offsets(
        self, writer: ShardWriter, row: InboxRow, request: ControlRequest, arrived: int, _asked: int
    ) -> Operation[str]:
        """Reads the end offsets of the scope's topics after the request arrived: events below them never count."""
        namespaces = None if request.namespace is None else [request.namespace]
        ends = yield from read_end_offsets(writer.host, namespaces, arrived)
        return (yield from store_end_offsets(writer, f"controls {row.origin}", as_vector(ends), VECTOR_DAYS))

    def roll_out(self, writer: ShardWriter) -> RollOut:
        return RollOut(writer, "settle_control", _acknowledged, _running)


SCOPE_SUSPENSIONS: Final = ScopeSuspensionKind()


# -- the transition ---------------------------------------------------------------------------------------------------------


def next_suspensions(
    before: ScopeSuspensions, request: ControlRequest, position: Position, vector: str | None
) -> tuple[ReceiptStatus | None, ScopeSuspensions]:
    """Returns the receipt's status and the suspensions after the request. The status is None if a resume needs end offsets that are not read so far."""
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
    """Drops scopes that were resumed too long ago. If there are too many: first those that never were suspended, then the oldest.

    Suspended scopes have their own room. A shard may not know of their resume, and only their spans tell which instants are no misfires.
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
    """Returns an instant before which the item may lack a suspended span, because its scope was dropped; 0: it lacks none.

    A dropped scope may have been suspended again since. It is in the item then, but without its earlier spans.
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


# -- the final receipt ------------------------------------------------------------------------------------------------------


def _acknowledged(lease: Item) -> int:
    return carried_by(lease).done


def _running(writer: ShardWriter, pending: PendingReceipt) -> Operation[dict[str, Any]]:
    """Lists the runs that go on after a suspend."""
    running: list[str] = []
    if isinstance(parse_request(pending.row.body.encode()), ControlSuspend):
        for shard in range(writer.host.holding.shards):
            # All shards have stopped. If the runs of one cannot be read, the receipt lacks them, and the log reports it.
            listing = _list_running(writer, shard, pending.receipt.namespace, running)
            yield from writer.host.safely("list_running", keys.shard_pk(shard), listing)
            if len(running) >= LISTED_MAX:
                break
    return {"running": tuple(running[:LISTED_MAX])}


def _list_running(writer: ShardWriter, shard: int, namespace: str | None, running: list[str]) -> Operation[None]:
    """Adds the scope's runs in one shard that are past the start gate; a suspend does not end them."""
    items = yield from writer.read_range(*keys.prefix_range(keys.RUN_PREFIX), keys.shard_pk(shard))
    runs = [from_item(Run, item) for item in items]
    running += [
        run.id
        for run in runs
        if run.state not in BEFORE_GATE and run.ended_at is None and namespace in (None, run.namespace)
    ]
