"""What is remembered of a schedule's earlier runs, for constraints that look at them (SEMANTICS 7.5).

Lies in the schedule's own shard and is written by nobody but the owner, in the very transactions that admit and finish a run: so
it can neither be ahead of the runs nor behind them. Schedules without such a constraint have no such item, and cost no write of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRuns:
    """Of one incarnation: a schedule that was deleted and made again begins without a past.

    Attributes:
        admitted: Instants of the latest admissions, oldest first; those that were taken back are not among them. As many as
            the schedule's constraints look at, and as many more as were open then, the last one among them: 9 bytes each, so 1,000 of them are 9 KB.
        open: Runs that were counted here and have not ended.
        finished: When a run of whatever outcome ended last, of those that had started.
        succeeded: The same for success.
    """

    namespace: str
    name: str
    incarnation: str
    admitted: tuple[int, ...] = ()
    open: int = 0
    finished: int | None = None
    succeeded: int | None = None

    def key(self, shard: int) -> Key:
        return keys.past_runs(shard, self.namespace, self.name)


NO_RUNS: Final = PastRuns(namespace="", name="", incarnation="")
