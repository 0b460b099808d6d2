"""What was counted towards a job, and the entries that it was counted from."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Evidence of the one unsealed job of a (schedule, correlation): counters only, entries lie in chunk rows.

    Attributes:
        id: Also the id of the job that it becomes.
        correlation: Key of its group: the value that it is paired by, where that is all that tells groups apart.
        paired_by: That value, where the key says more or something else; empty where it is paired by none.
        counts: What each leaf has counted, in its unit.
        chunks: Chunk rows written so far.
        first_at: Append time of its first entry.
        deadline: Instant of its timer row, or None: then something becomes of it, whatever it is (`triggers/latches.py`).
        job: True once the trigger is satisfied and the job exists; it absorbs until admission.
        stopped: As of a job.
        generation: In which it was opened; None where an older release wrote it last: then it is taken for one that goes on, until it is counted for again.
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
    generation: int | None = None

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
