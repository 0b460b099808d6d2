"""Words that say what becomes of what is pending when a schedule is suspended, resumed or updated (SEMANTICS 10, 12)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

SuspendMode: TypeAlias = Literal["drop", "drain", "hold", "freeze"]
"""`drop`: what waits is cancelled, events meanwhile are ignored. `drain`: what waits may still launch, nothing new comes.
`hold`: all goes on but admissions, and what is satisfied is parked. `freeze`: what waits is kept, nothing new comes."""

Backlog: TypeAlias = Literal["all", "last", "coalesce", "none"]
"""What a resume lets go on of what came due meanwhile."""

OnUpdate: TypeAlias = Literal["keep_due", "restart", "carry", "finish_old", "finish_admitted"]
"""`keep_due`: due occurrences of a time trigger keep their jobs, bound to the new version; all else that is pending is discarded.
`restart`: all that is pending is discarded. `carry`: it stays and is bound to the new version. `finish_old`: its jobs complete under the
version that made them. `finish_admitted`: as `keep_due`, and runs that were admitted start under the version that admitted them."""
KEEPS_DUE: Final[frozenset[OnUpdate]] = frozenset({"keep_due", "finish_admitted"})
FOR_PROGRAMS: Final[frozenset[OnUpdate]] = frozenset({"carry", "finish_old", "finish_admitted"})
"""Those that say something of jobs and runs, which schedules that send messages have none of."""
