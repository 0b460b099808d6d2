"""From raw answers of the store to one verdict: what to do after a refusal, a conflict, or no answer at all.

Pure: the DynamoDB adapter and the simulator both ask `next_step` what to do and do it. An SDK's own retry would re-send a
write whose answer was lost and report its own success as a failed condition (aws-sdk-java#2667); here the
witness decides.
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
"""Sends of one transaction before its author is told `Unavailable`: with the back-off below about 3 s when the store
answers at all. When it does not, the client's read time-out comes on top of each; nothing irreversible waits for it."""
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
        """Takes the witness as read after a doubtful refusal."""
        if witness is not None and witness.get("w") == self.transaction.token:
            return self, Committed()
        assert self.refusal is not None
        return self, self.refusal

    def unreadable(self) -> tuple[Settlement, Step]:
        """The witness could not be read: nothing is known."""
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
        # Applied by an earlier send, maybe one of an earlier settlement that ended as `Unavailable`.
        return standing, Committed()
    refused = replace(standing, refusal=Refused(failed, standing.doubtful))
    if not standing.doubtful:
        return refused, Refused(failed)
    if standing.transaction.witness is None:
        # Nothing tells whether it was applied; asking again would not either, so its author has to look.
        return refused, Refused(failed, doubtful=True)
    return refused, ReadWitness(standing.transaction.witness)
