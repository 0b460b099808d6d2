"""Rows on their way to somebody: timers, what comes in, what goes out, and who listens."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerRow:
    """A lower bound: whoever reads it decides again.

    Attributes:
        kind: `S` a schedule's next nominal, `E` a deadline of evidence, `C` the removal of ended evidence's chunks, `U`
            the end of a suspension, `L` the removal of a key's limit that nobody uses. (Open jobs and runs are few enough to be held in memory whole: their deadlines derive
            from their own rows.)
        ref: `<ns>/<name>` for `S` and `U`, `<ns>/<name>#<correlation hash>` for `E` (or `#at-least`, `#next-tick`), the evidence's id for
            `C`, the partition key of the limit's item for `L`.
        detail: For `E` the group's key, which `ref` only hashes (or the generation that is reminded); for `C` the number of chunks.
    """

    at: int
    kind: str
    ref: str
    detail: str | None = None

    def key(self, shard: int) -> Key:
        return keys.timer(shard, self.at, self.kind, self.ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """One leaf of a schedule, under the event key that it listens to; one row for each of its generations.

    Attributes:
        vector: Id of the shared item with the first offset that counts per topic partition; None for run_status, and for a row that was
            gone and whose vector nobody knows any more: what came after `asked_at` counts.
        activated_at: Of the state with which it was written; a former owner that was frozen there may have written it anew, later.
        asked_at: Append time of the request, or when a suspension was to end by itself; earlier events of topic partitions that the vector
            does not name do not count.
        starts: True where starts of runs count, not only their ends.
    """

    event_key: str
    namespace: str
    name: str
    incarnation: str
    generation: int
    leaf: int
    shard: int
    activated_at: int
    vector: str | None = None
    asked_at: int = 0
    starts: bool | None = None

    @property
    def told_from(self) -> int:
        """Runs are told that were admitted not earlier than this minus 1 s, whoever wrote the row, and whenever. Of these count as
        many as the schedule's state says (`Heard`).
        """
        return min(self.activated_at, self.asked_at)

    def key(self) -> Key:
        activation = (self.incarnation, self.generation, self.leaf, self.vector)
        return keys.index_row(self.event_key, self.namespace, self.name, *activation)
