"""The closed lists of states (SEMANTICS 0), as they are stored and shown."""

from __future__ import annotations

from enum import StrEnum


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
