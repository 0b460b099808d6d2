"""Evidence: events that are counted toward one job, and the log chunks that hold them."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Evidence of the one unsealed job of a schedule and correlation. It holds counters; the entries are in chunk rows.

    Attributes:
        id: Id of the evidence and of the job that it becomes.
        correlation: Key of its group; equal to the pairing value when that value alone separates groups.
        paired_by: Pairing value when the key holds more, or something different. Empty for a group without one.
        counts: Count of each leaf, in its unit.
        chunks: Number of chunk rows.
        first_at: Append time of its first entry.
        deadline: Instant of its timer row, at which the trigger decides about it; None without one.
        job: True once the trigger is satisfied and the job exists; it absorbs events until the admission.
        stopped: As in a job.
        generation: Generation that opened it. None when an older release wrote it last: then it counts as kept until
            the next event.
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
        """The pairing value, or None."""
        return (self.correlation if self.paired_by is None else self.paired_by) or None

    def key(self, shard: int) -> Key:
        return keys.evidence(shard, self.namespace, self.name, self.correlation)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceChunk:
    """Entries that one transaction counted, as JSON: a list of {leaf, key, ...}, at most 64 KB. Write-once.

    It has no TTL, because evidence may stay open for years. A timer row of kind `CHUNKS_TIMER` removes it after the
    end.
    """

    evidence_id: str
    chunk: int
    entries: str

    def key(self, shard: int) -> Key:
        return keys.evidence_chunk(shard, self.evidence_id, self.chunk)
