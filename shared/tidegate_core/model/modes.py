"""Words that say what becomes of what is pending when a schedule is suspended, resumed or updated (SEMANTICS 10, 12)."""

from __future__ import annotations

from typing import Literal, TypeAlias

SuspendMode: TypeAlias = Literal["drop", "drain", "hold", "freeze"]
"""`drop`: what waits is cancelled, events meanwhile are ignored. `drain`: what waits may still launch, nothing new comes.
`hold`: all goes on but admissions, and what is satisfied is parked. `freeze`: what waits is kept, nothing new comes."""

Backlog: TypeAlias = Literal["all", "last", "coalesce", "none"]
"""What a resume lets go on of what came due meanwhile."""

OnUpdate: TypeAlias = Literal["restart", "carry", "finish_old"]
"""`restart`: what is pending is discarded. `carry`: it stays and is bound to the new version. `finish_old`: its jobs
complete under the version that made them."""
