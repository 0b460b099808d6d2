"""Records of the run plane: schedule state, definition, job, run, evidence, inbox, outbox, ledger, past generations (DESIGN 6, 7)."""

from __future__ import annotations

from tidegate_core.records.run_plane.evidence import Evidence, EvidenceChunk
from tidegate_core.records.run_plane.generations import PastGeneration
from tidegate_core.records.run_plane.jobs import Job
from tidegate_core.records.run_plane.ledger import LedgerPlace, LedgerRow, RunEnd
from tidegate_core.records.run_plane.rows import InboxRow, IndexRow, OutboxRow, TimerRow
from tidegate_core.records.run_plane.runs import Run
from tidegate_core.records.run_plane.schedules import Definition, OwnLimit, ScheduleCount, ScheduleState

__all__ = [
    "Definition",
    "Evidence",
    "EvidenceChunk",
    "InboxRow",
    "IndexRow",
    "Job",
    "LedgerPlace",
    "LedgerRow",
    "OutboxRow",
    "OwnLimit",
    "PastGeneration",
    "Run",
    "RunEnd",
    "ScheduleCount",
    "ScheduleState",
    "TimerRow",
]
