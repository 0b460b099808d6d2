"""From raw answers of the store to one verdict: what to do after a refusal, a conflict, or no answer at all.

Pure: the DynamoDB adapter and the simulator both ask `next_step` what to do and do it. An SDK's own retry would re-send a
write whose answer was lost and report its own success as a failed condition (aws-sdk-java#2667); here the
witness decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from tidegate_core.effects import Committed, Refused, Unavailable
from tidegate_core.store.values import (
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
"""Sends of one transaction before its author is told `Unavailable`: with the back-off below about 3 s, less than half a
Kafka session, so that a shard's actor is never stuck in here longer than its guard lasts."""
BACKOFF_FIRST_MS = 50
BACKOFF_LAST_MS = 1_000

CONDITION_FAILED = "ConditionalCheckFailed"
NO_REASON = "None"


@dataclass(frozen=True, slots=True)
class SendAgain:
    """Send the same transaction, same token, after a pause (full jitter is the driver's: the core has no randomness)."""

    after_ms_max: int


@dataclass(frozen=True, slots=True)
class ReadWitness:
    """Read the witness consistently and call `witnessed`."""

    key: Key


Verdict: TypeAlias = Committed | Refused | Unavailable
Step: TypeAlias = SendAgain | ReadWitness | Verdict


@dataclass(frozen=True, slots=True)
class Settlement:
    """Where one transaction stands.

    Attributes:
        sent: Sends so far.
        doubtful: Some send got no answer, so a failed condition may be our own success.
        refusal: The refusal that waits for the witness's word.
    """

    transaction: Transaction
    sent: int = 0
    doubtful: bool = False
    refusal: Refused | None = None

    def answered(self, outcome: RawOutcome) -> tuple[Settlement, Step]:
        """Takes the answer to one send and returns the new standing with the next step."""
        now = replace(self, sent=self.sent + 1)
        match outcome:
            case Applied():
                return now, Committed()
            case Throttled():
                return now._again()
            case Lost():
                return replace(now, doubtful=True)._again()
            case Cancelled(reasons):
                return now._cancelled(reasons)

    def witnessed(self, witness: Item | None) -> tuple[Settlement, Step]:
        """Takes the witness as read after a doubtful refusal."""
        if witness is not None and witness.get("w") == self.transaction.token:
            return self, Committed()
        assert self.refusal is not None
        return self, self.refusal

    def unreadable(self) -> tuple[Settlement, Step]:
        """The witness could not be read: nothing is known."""
        return self, Unavailable(f"store, transaction {self.transaction.name}")

    def _again(self) -> tuple[Settlement, Step]:
        if self.sent >= ATTEMPTS_MAX:
            return self, Unavailable(f"store, transaction {self.transaction.name}")
        return self, SendAgain(min(BACKOFF_FIRST_MS << (self.sent - 1), BACKOFF_LAST_MS))

    def _cancelled(self, reasons: tuple[RefusalCode, ...]) -> tuple[Settlement, Step]:
        failed = tuple(
            (action.key, reason.item)
            for action, reason in zip(self.transaction.actions, reasons, strict=True)
            if reason.code == CONDITION_FAILED
        )
        if not failed:
            if self.sent >= ATTEMPTS_MAX and not self.doubtful:
                return self, Refused(())
            return self._again()
        if any(
            key == self.transaction.witness and item is not None and item.get("w") == self.transaction.token
            for key, item in failed
        ):
            # Applied by an earlier send, maybe one of an earlier settlement that ended as `Unavailable`.
            return self, Committed()
        refused = replace(self, refusal=Refused(failed))
        if not self.doubtful:
            return refused, Refused(failed)
        if self.transaction.witness is None:
            return self.unreadable()
        return refused, ReadWitness(self.transaction.witness)
