"""Answer to a request: stored in the transaction that it answers, and extended while pages of the request still end pending work.

All commands write their receipts here. A request that comes again gets the stored receipt.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.rows.receipt import RECEIPT_DAYS, StoredReceipt, expiry
from tidegate_core.writes.unit_of_work import UnitOfWork

OWN = "*"
"""Stands for the namespace of the answer; it is no valid namespace."""


@dataclass(slots=True)
class Outcome:
    """Progress of one request; decisions fill it, and the procedure reads it.

    Attributes:
        subject: Text that names the subject of the request (`subject_of`).
        receipt: Answer so far.
        settled: Whether the answer is final.
        definition: Hash of the definition that the request brings (`definition_of`).
    """

    subject: str
    receipt: Receipt | None = None
    settled: bool = False
    definition: str | None = None


def answer(
    unit: UnitOfWork, outcome: Outcome, receipt: Receipt, now: int, *, settled: bool = True, under: str | None = OWN
) -> None:
    """Stores the answer in the transaction that it answers; repeats of the request get it again for 7 days.

    Args:
        unit: Unit of that transaction.
        outcome: Progress of the request.
        receipt: Answer.
        now: Instant of the decision.
        settled: Whether the answer is final.
        under: Namespace of the request, if the answer names another one.
    """
    stored = StoredReceipt(
        request_id=receipt.request_id,
        namespace=receipt.namespace if under == OWN else under,
        subject=outcome.subject,
        body=receipt.to_json().decode(),
        expires_at=expiry(now, RECEIPT_DAYS),
        settled=settled,
        definition=outcome.definition,
    )
    unit.put(stored, stored.key(unit.shard))
    outcome.receipt, outcome.settled = receipt, settled
