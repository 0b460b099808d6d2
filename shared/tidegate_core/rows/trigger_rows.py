"""Rows that lead to a schedule: timer rows by instant, subscriptions by event key.

Both derive from schedule state, evidence or limits, and the repair sweeps restore missing ones. A reader always
checks the state before it acts.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerRow:
    """A lower bound in time: its reader decides from the state whether something is due.

    Open jobs and runs have no timer rows. They are few, so the cache holds them all and derives their deadlines.

    Attributes:
        kind: Timer kind of `rows/keys.py`.
        ref: `<ns>/<name>` for `NOMINAL_TIMER` and `RESUME_TIMER`; with `#<correlation hash>`, `#at-least` or
            `#next-tick` for `EVIDENCE_TIMER`; the evidence id for `CHUNKS_TIMER`; the limit's partition key for
            `LIMIT_TIMER`.
        detail: Key of the evidence group, which `ref` only hashes, or the generation of a reminder; number of chunks
            for `CHUNKS_TIMER`.
    """

    at: int
    kind: str
    ref: str
    detail: str | None = None

    def key(self, shard: int) -> Key:
        return keys.timer(shard, self.at, self.kind, self.ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """A subscription: one leaf of a schedule's trigger under its event key, one row per generation.

    Attributes:
        vector: Id of the shared item with the first offset that counts per topic partition. None for `run_status`,
            and for a restored row whose vector is lost: then events after `asked_at` count.
        activated_at: Activation in the state with which the row was written. A former owner that froze may have
            rewritten the row later.
        asked_at: Append time of the request, or the planned end of a suspension. It bounds events of topic partitions
            that the vector does not name.
        starts: True when starts of runs count in addition to their ends.
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
        """Admission time from which runs are published to this subscription, less 1 s of slack.

        It does not depend on which owner wrote the row, or when. The schedule's state decides which of those runs
        count.
        """
        return min(self.activated_at, self.asked_at)

    def key(self) -> Key:
        activation = (self.incarnation, self.generation, self.leaf, self.vector)
        return keys.index_row(self.event_key, self.namespace, self.name, *activation)
