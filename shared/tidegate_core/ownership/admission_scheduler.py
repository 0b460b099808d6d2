"""Whose waiting jobs are looked at: each schedule has at most one decision under way, whatever asks for another.

A look costs a decision, and for a shared limit a read: asked for by every job, run and instant on its own, the looks of a
few schedules that wait would be all that the shard does.
"""

from __future__ import annotations

from functools import partial

from tidegate_core.admission.admit import AdmitNext
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.runs.run_lifecycle import RequestCancel
from tidegate_core.shard.shard_cache import ShardCache


class AdmissionScheduler:
    """One per shard."""

    def __init__(self, lane: ShardWriter, memory: ShardCache) -> None:
        self._lane = lane
        self._memory = memory
        self._under_way: dict[str, bool] = {}

    def request(self, ref: str) -> None:
        """Something changed for this schedule's jobs."""
        if ref in self._under_way:
            self._under_way[ref] = True  # It may have been decided before the change.
        elif self._memory.has_waiting(ref):
            self._under_way[ref] = False
            self._lane.add(AdmitNext(ref, self._memory, partial(self.decided, ref), cancel=self._cancel))

    def _cancel(self, run_id: str) -> None:
        """A job that waits wants the place of this run. Asked for again until it is gone: that follows from the rows."""
        self._lane.add(RequestCancel(self._lane.shard, run_id, reason="overlap"))

    def decided(self, ref: str, goes_on: bool) -> None:
        """What was under way is in the store; `goes_on` when there is more to decide."""
        changed = self._under_way.pop(ref, False)
        if goes_on or changed:
            self.request(ref)
