"""Earlier runs of a schedule, as its constraints need them.

Only the owner of the schedule's shard writes the row, in the transactions that admit and end a run. So the row always
agrees with the runs. A schedule without such a constraint has no row and pays for no write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRuns:
    """Earlier runs of one incarnation: a schedule that was deleted and recreated begins without any.

    Attributes:
        admitted: Times of the latest admissions, oldest first, without withdrawn ones. It keeps as many as the
            constraints read, plus one for each run open at the last admission: 9 bytes each, 9 KB for 1,000.
        open: Number of counted runs that have not ended.
        finished: End of the last run that had started, of any outcome.
        succeeded: End of the last run that succeeded.
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
