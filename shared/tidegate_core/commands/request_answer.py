"""The answer to a request: kept with what it answers, growing while a request still ends pending things (DESIGN 7)."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.rows.receipt import RECEIPT_DAYS, StoredReceipt, expiry
from tidegate_core.writes.unit_of_work import UnitOfWork

OWN = "*"
"""No namespace: the answer's own."""


@dataclass(slots=True)
class Outcome:
    """What applying a request has come to; the decisions fill it, the procedure reads it.

    Attributes:
        subject: What the request is about (`subject_of`).
        receipt: The answer so far.
        settled: Nothing will be added to it.
        definition: What the request defines (`definition_of`).
    """

    subject: str
    receipt: Receipt | None = None
    settled: bool = False
    definition: str | None = None


def answer(
    unit: UnitOfWork, outcome: Outcome, receipt: Receipt, now: int, *, settled: bool = True, under: str | None = OWN
) -> None:
    """Stores the answer in the transaction of what it answers; a repeat of the request gets it again (7 days).

    Args:
        unit: Of that transaction.
        outcome: What applying the request has come to.
        receipt: The answer.
        now: When it is decided.
        settled: Nothing will be added to it.
        under: The namespace that the request named, where the answer can say more than it did.
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
