"""The closed lists of states (SEMANTICS 0), as they are stored and shown.

Words that say what becomes of what is pending when a schedule is suspended, resumed or updated (SEMANTICS 10, 12).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, TypeAlias


class JobState(StrEnum):
    """Where an occurrence in the making stands; it ends in a `Disposition`."""

    PENDING_TRIGGER = "pending_trigger"
    PENDING_CONSTRAINT = "pending_constraint"
    PENDING_LAUNCH = "pending_launch"


class RunState(StrEnum):
    """Where a run stands. `closed` is a run that was ended before the start gate and never ran."""

    SUBMITTING = "submitting"
    SUBMITTED = "submitted"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"
    LOST = "lost"
    TIMED_OUT = "timed_out"
    CLOSED = "closed"

    @property
    def is_before_gate(self) -> bool:
        """Whether the program has certainly not begun: such a run can still be closed."""
        return self in {RunState.SUBMITTING, RunState.SUBMITTED}

    @property
    def is_ended(self) -> bool:
        return not self.is_before_gate and self is not RunState.RUNNING


class Disposition(StrEnum):
    """How an occurrence ended in the ledger."""

    LAUNCHED = "launched"
    DELIVERED = "delivered"
    COALESCED = "coalesced"
    SKIPPED = "skipped"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


NEEDS_REASON = frozenset({Disposition.SKIPPED, Disposition.EXPIRED, Disposition.CANCELLED})


def disposition_text(disposition: Disposition, reason: str = "") -> str:
    """Returns the ledger's text, such as `cancelled/schedule_deleted`.

    Raises:
        ValueError: What did not happen has no reason, against invariant I1.
    """
    if disposition in NEEDS_REASON and not reason:
        raise ValueError(f"{disposition} needs a reason")
    return f"{disposition}/{reason}" if reason else str(disposition)


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
