"""Upkeep of shared limits by their coordinator: removal of idle limits, and the audit of permits.

The audit compares the permits of a limit with its runs while jobs wait for the limit. It logs findings and writes
nothing.
A permit and its run's item are written in the same transactions. So a permit without a run means a bug, or a manual
change
of the store. Freeing the permit could exceed the limit, so a person decides. The coordinator audits, and not the runs'
shards: it alone knows whether a job waits, and a stuck permit without a queue harms no job.

A keyed constraint has a limit for each value of the key, and most values never return. So idle limits are removed. Each
admission and each job that joins the queue also writes a timer row on the owner shard. When the row is due, the
coordinator removes an idle limit, and checks a busy one again later. It also serves the queue of a marked limit, so
that an abandoned queue does not keep the item. A removed limit equals one that was never used: the next admission
creates it. A rate is removed only after all its spans have passed, so no count is lost.

A late repeat of an offer can leave an item that offers a permit to a finished job. It has no effect, and goes when its
key is used again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.values.derived_ids import shard_of_run
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.shared_limit import SharedLimit
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.limits.limit_queue_entry import _row
from tidegate_core.writes.limit_permits import remove_idle, take_out
from tidegate_core.writes.unit_of_work import UnitOfWork

AUDIT_MS: Final = 60_000
"""Time between two audits of a limit. Limit and runs are not read at one instant, so a run must be missing in two
audits."""


class PermitAudit:
    """One per shard."""

    def __init__(self, writer: ShardWriter) -> None:
        self._writer = writer
        self._host = writer.host
        self._looked: dict[Key, int] = {}
        self._missing: dict[Key, frozenset[str]] = {}

    def look_now_and_then(self, limit: Key) -> None:
        """Starts an audit if the last one is old enough. Rates are skipped: their counts expire by time and have no
        open run to compare with.
        """
        if not keys.is_rate(limit) and self._looked.get(limit, 0) + AUDIT_MS <= self._host.now:
            self._looked[limit] = self._host.now
            self._host.start_safely("audit_permits", limit.pk, self._look(limit))

    def forget(self, limit: Key) -> None:
        """No job waits for the limit any more."""
        self._looked.pop(limit, None)
        self._missing.pop(limit, None)

    def _look(self, limit: Key) -> Operation[None]:
        found = yield from self._host.read_for_good(Read((limit,)))
        assert isinstance(found, Items)
        low, high = keys.permit(limit, "").sk, keys.permit(limit, keys.LAST).sk
        own_items = yield from self._writer.read_range(low, high, pk=limit.pk)
        holders = SharedLimit.of(found.found.get(limit)).holders | {str(item["run_id"]) for item in own_items}
        missing = yield from self._without_run(holders)
        for run_id in sorted(missing & self._missing.get(limit, frozenset())):
            self._host.note("permit_stuck", limit=limit.pk, run_id=run_id)
        if limit in self._looked:
            self._missing[limit] = missing

    def _without_run(self, holders: frozenset[str]) -> Operation[frozenset[str]]:
        runs = {keys.run(shard_of_run(run_id), run_id): run_id for run_id in sorted(holders)}
        if not runs:
            return frozenset()
        found = yield from self._host.read_for_good(Read(tuple(runs)))
        assert isinstance(found, Items)
        return frozenset(run_id for key, run_id in runs.items() if key not in found.found)


@dataclass(frozen=True, slots=True)
class RemoveIdle:
    """Removes the limit that a timer row names, if no run or job uses it.

    Attributes:
        row: Timer row of kind `L` that is due.
        look: Callback that makes the coordinator serve the limit's queue.
    """

    row: TimerRow
    look: Callable[[str], None]
    name: str = "idle"

    @property
    def about(self) -> str:
        return self.row.ref

    @property
    def stale(self) -> tuple[Key, ...]:
        """The limit's item, which owners of other shards also write."""
        return (self._limit,)

    @property
    def _limit(self) -> Key:
        return keys.limit_of(self.row.ref)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        state = SharedLimit.of(unit.item(self._limit))
        expired = state.expired(now)
        if expired:
            unit.apply(take_out(self._limit, expired))
            unit.go_on()
            return
        if state.in_use or state.queued is not None:
            later = _row(self._limit, max((now, *state.counts)))
            unit.set_row(later, later.key(unit.shard))
            if state.queued is not None:
                unit.after(partial(self.look, self.row.ref))
        else:
            unit.apply(remove_idle(self._limit))
        unit.forget_row(self.row.key(unit.shard))
