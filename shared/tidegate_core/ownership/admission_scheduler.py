"""Requests admission decisions for waiting jobs; each schedule has at most one in progress.

A decision costs time of the shard writer, and for a shared limit a read. Every job, run and instant of a schedule may request one. Without this bound a few
schedules with waiting jobs would use up the whole shard.
"""

from __future__ import annotations

from functools import partial

from tidegate_core.admission.admit import AdmitNext
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.runs.run_lifecycle import RequestCancel
from tidegate_core.shard.shard_cache import ShardCache


class AdmissionScheduler:
    """Decisions in progress by schedule; one per shard."""

    def __init__(self, writer: ShardWriter, memory: ShardCache) -> None:
        self._writer = writer
        self._memory = memory
        self._under_way: dict[str, bool] = {}

    def request(self, ref: str) -> None:
        """Requests a decision, because something changed for the schedule's jobs."""
        if ref in self._under_way:
            self._under_way[ref] = True  # The decision in progress may not know of the change.
        elif self._memory.has_waiting(ref):
            self._under_way[ref] = False
            self._writer.add(AdmitNext(ref, self._memory, partial(self.decided, ref), cancel=self._cancel))

    def _cancel(self, run_id: str) -> None:
        """Cancels a run whose place a waiting job takes. The rows make each decision request it again, until the run is gone."""
        self._writer.add(RequestCancel(self._writer.shard, run_id, reason="overlap"))

    def decided(self, ref: str, goes_on: bool) -> None:
        """Called once the decision is stored; `goes_on`: the schedule has more jobs to decide."""
        changed = self._under_way.pop(ref, False)
        if goes_on or changed:
            self.request(ref)
