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
