"""Derives one verdict from the raw answers to a transaction, after refusals, conflicts and lost answers.

It is pure: the DynamoDB adapter and the simulator call `Settlement` for the next step and take it. The retry of an
SDK would resend a write after a lost answer, and report its own success as a failed condition (aws-sdk-java#2667).
Here the witness decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from tidegate_core.rows.effects import Committed, Refused, Unavailable
from tidegate_core.rows.store_operations import (
    Applied,
    Cancelled,
    Item,
    Key,
    Lost,
    RawOutcome,
    RefusalCode,
    Throttled,
    Transaction,
)

ATTEMPTS_MAX = 6
"""Sends of one transaction before its author gets `Unavailable`: about 3 s with the back-off below.

When the store does not answer, the client's read time-out adds to each send. Nothing irreversible waits for it.
"""
BACKOFF_FIRST_MS = 50
BACKOFF_LAST_MS = 1_000

CONDITION_FAILED = "ConditionalCheckFailed"
NO_REASON = "None"


@dataclass(frozen=True, slots=True)
class SendAgain:
    """Step: send the same transaction with the same token after a pause.

    The driver adds full jitter, because the core has no randomness.
    """

    after_ms_max: int


@dataclass(frozen=True, slots=True)
class ReadWitness:
    """Step: read the witness consistently, then call `witnessed`."""

    key: Key


Verdict: TypeAlias = Committed | Refused | Unavailable
Step: TypeAlias = SendAgain | ReadWitness | Verdict


@dataclass(frozen=True, slots=True)
class Settlement:
    """Progress of one transaction.

    Attributes:
        sent: Number of sends so far.
        doubtful: True after a send without an answer, so that a failed condition may be the transaction's own
            success.
        refusal: Refusal that the witness must confirm.
    """

    transaction: Transaction
    sent: int = 0
    doubtful: bool = False
    refusal: Refused | None = None

    def answered(self, outcome: RawOutcome) -> tuple[Settlement, Step]:
        """Takes the answer to one send. Returns the new progress and the next step."""
        now = Settlement(self.transaction, self.sent + 1, self.doubtful, self.refusal)
        match outcome:
            case Applied():
                return now, Committed()
            case Throttled():
                return _again(now)
            case Lost():
                return _again(replace(now, doubtful=True))
            case Cancelled(reasons):
                return _cancelled(now, reasons)

    def witnessed(self, witness: Item | None) -> tuple[Settlement, Step]:
        """Takes the witness that was read after a doubtful refusal."""
        if witness is not None and witness.get("w") == self.transaction.token:
            return self, Committed()
        assert self.refusal is not None
        return self, self.refusal

    def unreadable(self) -> tuple[Settlement, Step]:
        """Takes the failure to read the witness: the outcome stays unknown."""
        return self, Unavailable(f"store, transaction {self.transaction.name}")


def _again(standing: Settlement) -> tuple[Settlement, Step]:
    if standing.sent >= ATTEMPTS_MAX:
        return standing, Unavailable(f"store, transaction {standing.transaction.name}")
    return standing, SendAgain(min(BACKOFF_FIRST_MS << (standing.sent - 1), BACKOFF_LAST_MS))


def _cancelled(standing: Settlement, reasons: tuple[RefusalCode, ...]) -> tuple[Settlement, Step]:
    failed = tuple(
        (action.key, reason.item)
        for action, reason in zip(standing.transaction.actions, reasons, strict=True)
        if reason.code == CONDITION_FAILED
    )
    if not failed:
        if standing.sent >= ATTEMPTS_MAX and not standing.doubtful:
            return standing, Refused(())
        return _again(standing)
    if any(
        key == standing.transaction.witness and item is not None and item.get("w") == standing.transaction.token
        for key, item in failed
    ):
        # An earlier send applied it, possibly in an earlier settlement that ended as `Unavailable`.
        return standing, Committed()
    refused = replace(standing, refusal=Refused(failed, standing.doubtful))
    if not standing.doubtful:
        return refused, Refused(failed)
    if standing.transaction.witness is None:
        # Nothing shows whether it was applied, and another send would not show it either. So the author must check.
        return refused, Refused(failed, doubtful=True)
    return refused, ReadWitness(standing.transaction.witness)
