"""Compares the permits of a shared limit with the runs that hold them, while others wait for one. It only tells.

A permit is taken and given back in the same transaction as its run's item comes and goes, so one without a run means a bug, or
that somebody has changed the store by hand. Freeing it could exceed the limit (I4): a person decides. The home of the limit
looks, and not the runs' shards: it alone knows whether anybody waits, and a stuck permit hurts nobody else.
"""

from __future__ import annotations

from typing import Final

from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.values.derived_ids import shard_of_run
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.shared_limit import SharedLimit
from tidegate_core.rows.store_operations import Key

AUDIT_MS: Final = 60_000
"""Between two looks at one limit. Limit and runs are not read in one instant, so a run has to be missing at both."""


class PermitAudit:
    """One per shard."""

    def __init__(self, lane: ShardWriter) -> None:
        self._lane = lane
        self._host = lane.host
        self._looked: dict[Key, int] = {}
        self._missing: dict[Key, frozenset[str]] = {}

    def look_now_and_then(self, limit: Key) -> None:
        """Looks when the last look is long enough ago. What a rate counts has no run to be compared with: it comes back by time."""
        if not keys.is_rate(limit) and self._looked.get(limit, 0) + AUDIT_MS <= self._host.now:
            self._looked[limit] = self._host.now
            self._host.start_safely("audit_permits", limit.pk, self._look(limit))

    def forget(self, limit: Key) -> None:
        """Nobody waits for it any more."""
        self._looked.pop(limit, None)
        self._missing.pop(limit, None)

    def _look(self, limit: Key) -> Operation[None]:
        found = yield from self._host.read_for_good(Read((limit,)))
        assert isinstance(found, Items)
        low, high = keys.permit(limit, "").sk, keys.permit(limit, keys.LAST).sk
        own_items = yield from self._lane.read_range(low, high, pk=limit.pk)
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
