"""Waits until every shard has acknowledged a version of a cluster object, then has the final receipt stored.

A kind of cluster object whose receipts promise a state in all shards uses it (`cluster_object.py`); scope suspensions do. Each shard writes
the version that it has carried out into its lease. The request stays in the inbox until then: after a crash the next owner finds the
unsettled receipt and waits again. Later requests on the object need not wait for earlier ones. `SettleReceipt` writes the final receipt, and nothing else here writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.receipt import StoredReceipt, definition_of, subject_of
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.writes.unit_of_work import UnitOfWork

CHECK_MS = 250
"""Interval between reads of the leases that have not acknowledged the version."""


class PendingReceipt(NamedTuple):
    """A request whose final receipt waits until all shards have acknowledged its version.

    Attributes:
        row: Inbox row of the request.
        receipt: The receipt so far.
        announce: Publishes a stored receipt and removes the row.
    """

    row: InboxRow
    receipt: Receipt
    announce: Callable[[InboxRow, str], None]

    @property
    def version(self) -> int:
        assert self.receipt.version is not None
        return self.receipt.version


class RollOut:
    """All receipts of one kind that wait in one shard.

    One read of the leases serves all of them. If a shard has no owner, senders repeat their requests for hours.

    Args:
        writer: Writer of the shard that owns the object.
        label: Name of the transaction that stores the final receipt; a metric label.
        acknowledged: Returns the version that a lease acknowledges.
        details: Reads the fields that the final receipt adds.
    """

    def __init__(
        self,
        writer: ShardWriter,
        label: str,
        acknowledged: Callable[[Item], int],
        details: Callable[[ShardWriter, PendingReceipt], Operation[Mapping[str, Any]]],
    ) -> None:
        self._writer = writer
        self._label = label
        self._acknowledged = acknowledged
        self._details = details
        self._waiting: dict[Key, PendingReceipt] = {}
        self._done: dict[int, int] = {}
        self._is_polling = False

    def begin(self, pending: PendingReceipt) -> bool:
        """Waits for the version of a receipt. Returns False for a repeat of a request that waits: that request's receipt answers both."""
        receipt = pending.receipt
        key = keys.receipt(self._writer.shard, receipt.namespace, receipt.request_id)
        if key in self._waiting:
            return False
        self._waiting[key] = pending
        if not self._is_polling:
            self._is_polling = True
            self._writer.host.start_safely("spread", f"shard {self._writer.shard}", self._poll())
        return True

    def _poll(self) -> Operation[None]:
        """Reads leases until no receipt waits."""
        try:
            while self._waiting:
                done = yield from self._done_by_all(max(each.version for each in self._waiting.values()))
                complete = [key for key, each in self._waiting.items() if each.version <= done]
                for each in [self._waiting.pop(key) for key in complete]:
                    self._writer.host.start_safely("spread", each.receipt.request_id, self._settle(each))
                if self._waiting:
                    yield from self._writer.host.sleep(CHECK_MS)
        finally:
            self._is_polling = False

    def _settle(self, pending: PendingReceipt) -> Operation[None]:
        details = yield from self._details(self._writer, pending)
        self._writer.add(SettleReceipt(pending, details, self._label))

    def _done_by_all(self, wanted: int) -> Operation[int]:
        """Returns the version that all shards have acknowledged, at most the wanted one. Reads only leases below the wanted version."""
        shards = range(self._writer.host.holding.shards)
        behind = {shard: keys.lease(shard) for shard in shards if self._done.get(shard, 0) < wanted}
        if behind:
            answer = yield from self._writer.host.read_for_good(Read(tuple(behind.values())))
            assert isinstance(answer, Items)
            leases = {shard: answer.found.get(key) for shard, key in behind.items()}
            self._done |= {shard: 0 if lease is None else self._acknowledged(lease) for shard, lease in leases.items()}
        return min(wanted, *(self._done[shard] for shard in shards))


@dataclass(frozen=True, slots=True)
class SettleReceipt:
    """Stores and announces the final receipt; a settled receipt that is stored already is announced unchanged.

    The unsettled receipt may have expired, if a shard had no owner for that long.

    Attributes:
        pending: The request with the receipt so far.
        details: Fields that the final receipt adds.
    """

    pending: PendingReceipt
    details: Mapping[str, Any]
    name: str
    stale: tuple[Key, ...] = ()

    @property
    def about(self) -> str:
        return self.pending.receipt.request_id

    def decide(self, unit: UnitOfWork, now: int) -> None:
        row, receipt, announce = self.pending
        stored = unit.record(StoredReceipt, keys.receipt(unit.shard, receipt.namespace, receipt.request_id))
        if stored is not None and stored.settled:
            body = stored.body
        else:
            request = parse_request(row.body.encode())
            outcome = Outcome(subject_of(request), receipt, definition=definition_of(request))
            answer(unit, outcome, receipt.model_copy(update={**self.details, "at": now}), now)
            assert outcome.receipt is not None
            body = outcome.receipt.to_json().decode()
        unit.after(lambda: announce(row, body))
