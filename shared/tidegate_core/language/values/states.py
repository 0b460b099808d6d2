"""Closed lists of words: states of jobs and runs, outcomes in the ledger, and modes of suspend, resume and update.

The words are stored and shown as they are here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, TypeAlias


class JobState(StrEnum):
    """State of a job. A job ends in a `Disposition`."""

    PENDING_TRIGGER = "pending_trigger"
    PENDING_CONSTRAINT = "pending_constraint"
    PENDING_LAUNCH = "pending_launch"


class RunState(StrEnum):
    """State of a run. A `closed` run was ended before the start gate: its program never ran."""

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
        """Whether the program has certainly not started, so that the run can still be closed."""
        return self in {RunState.SUBMITTING, RunState.SUBMITTED}

    @property
    def is_ended(self) -> bool:
        return not self.is_before_gate and self is not RunState.RUNNING


class Disposition(StrEnum):
    """Outcome of an occurrence in the ledger."""

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
        ValueError: The disposition needs a reason and has none. Every occurrence without a run has a reason in the ledger.
    """
    if disposition in NEEDS_REASON and not reason:
        raise ValueError(f"{disposition} needs a reason")
    return f"{disposition}/{reason}" if reason else str(disposition)


SuspendMode: TypeAlias = Literal["drop", "drain", "hold", "freeze"]
"""Modes of a suspension.

`drop`: waiting jobs are cancelled, and events during the suspension are ignored. `drain`: waiting jobs may still start; no new
occurrences are created. `hold`: only admissions stop; satisfied jobs are parked. `freeze`: waiting jobs are kept; no new
occurrences are created."""

Backlog: TypeAlias = Literal["all", "last", "coalesce", "none"]
"""Occurrences of the suspended span that a resume continues or creates."""

OnUpdate: TypeAlias = Literal["keep_due", "restart", "carry", "finish_old", "finish_admitted"]
"""Rules for pending jobs and evidence when a definition is replaced.

`keep_due`: due occurrences of a time trigger keep their jobs, bound to the new version; all other pending work is discarded.
`restart`: all pending work is discarded. `carry`: pending work stays and is bound to the new version. `finish_old`: jobs
complete under the version that created them. `finish_admitted`: as `keep_due`, and admitted runs start under the version that
admitted them."""
KEEPS_DUE: Final[frozenset[OnUpdate]] = frozenset({"keep_due", "finish_admitted"})
FOR_PROGRAMS: Final[frozenset[OnUpdate]] = frozenset({"carry", "finish_old", "finish_admitted"})
"""Modes about jobs and runs. A schedule that sends messages has neither."""
